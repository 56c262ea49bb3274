"""What the experiments on the chat service share: users, frames, stack and parameters."""
