from gapwatch.access.sealing import Sealer


def test_secrets_at_rest_are_unreadable_without_the_server_secret():
    sealed = Sealer(b"one server").seal({"routing_key": "R123"})
    assert b"R123" not in sealed
    assert Sealer(b"one server").open(sealed) == {"routing_key": "R123"}
    assert Sealer(b"another").open(sealed) is None
    assert Sealer(b"one server").open(None) == {}
