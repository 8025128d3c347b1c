"""What models are asked, a file a task; a changed wording is a new version."""
