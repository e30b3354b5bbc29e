"""N-gram language models, the perplexity of a text, and the answers that models give."""
