"""Drive roles with recorded or scripted input: in process, and as nodes over DDS."""
