from gapwatch.access.fingerprint import new_fingerprint


def test_a_fingerprint_fits_its_secret_and_no_other():
    fingerprint = new_fingerprint(b"secret")
    assert fingerprint.fits(b"secret")
    assert not fingerprint.fits(b"Secret")


def test_two_fingerprints_of_one_secret_share_nothing():
    one, other = new_fingerprint(b"secret"), new_fingerprint(b"secret")
    assert one.salt != other.salt
    assert one.digest != other.digest
