"""The version of the client, told to the server with every request."""

VERSION = "0.1.0"
