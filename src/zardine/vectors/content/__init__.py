"""What a level holds, in memory, and how it is divided into cells. Pure."""
