"""Labels in the forms that coders' tools read, and back."""
