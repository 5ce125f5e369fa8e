"""How arrays of any version become arrays of another one."""
