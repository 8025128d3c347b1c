"""The view: a local page that shows a bag or a running graph."""
