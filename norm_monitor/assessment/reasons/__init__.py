"""What words a flag of a turn or a silence; nothing here decides whether there is one."""
