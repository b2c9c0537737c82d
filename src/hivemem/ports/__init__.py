"""What hivemem needs from the outside, as protocols with their contracts."""
