"""The documentation: Markdown pages, and what is generated for them. Run its programs from the repository's root."""
