"""What can be read out of a text without a language model."""
