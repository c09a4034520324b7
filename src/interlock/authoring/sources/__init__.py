"""Where workflows come from, and what is cached of them."""
