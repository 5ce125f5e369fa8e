"""``python -m zardine`` is the command ``zardine``."""

from zardine.cli import main

if __name__ == "__main__":
    main()
