"""Work on whole arrays and hierarchies: each tool is a function of the package, and a command."""
