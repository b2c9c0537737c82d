"""Pure retrieval: text, scores and ranks in, text, scores and ranks out; no storage, clock or models."""
