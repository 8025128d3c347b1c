"""Pictures with blurred faces, and sound of those who consented."""
