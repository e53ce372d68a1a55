"""Request body into validated episodes, and those into one durable transaction."""
