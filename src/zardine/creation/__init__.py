"""What a user asks for becomes a metadata document. No I/O."""
