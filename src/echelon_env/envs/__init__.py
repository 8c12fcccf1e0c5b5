"""The environment classes that users construct."""
