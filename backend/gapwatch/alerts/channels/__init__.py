"""One module a kind of channel: content in, one request to the other side out."""
