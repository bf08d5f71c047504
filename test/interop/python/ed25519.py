"""Ed25519 signatures, RFC 8032 section 5.1, with nothing but the standard library.

Slow and not of constant time: for tests, not for keys that matter.
"""

import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P

# A point is (X, Y, Z, T) with x = X/Z, y = Y/Z, x*y = T/Z (section 5.1.4).
NEUTRAL = (0, 1, 1, 0)


def _add(a, b):
    m = (a[1] - a[0]) * (b[1] - b[0]) % P
    n = (a[1] + a[0]) * (b[1] + b[0]) % P
    t = 2 * a[3] * b[3] * D % P
    z = 2 * a[2] * b[2] % P
    e, f, g, h = n - m, z - t, z + t, n + m
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def _multiply(scalar, point):
    result = NEUTRAL
    while scalar > 0:
        if scalar & 1:
            result = _add(result, point)
        point = _add(point, point)
        scalar >>= 1
    return result


def _base_point():
    y = 4 * pow(5, -1, P) % P
    # x^2 = (y^2 - 1) / (d y^2 + 1), and its even root (section 5.1.3).
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x & 1:
        x = P - x
    return (x, y, 1, x * y % P)


BASE = _base_point()


def _encode(point):
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _expand(secret):
    digest = hashlib.sha512(secret).digest()
    scalar = int.from_bytes(digest[:32], "little")
    scalar &= (1 << 254) - 8
    scalar |= 1 << 254
    return scalar, digest[32:]


def public_key(secret):
    """The 32 bytes of the public key of a private key of 32 bytes."""
    return _encode(_multiply(_expand(secret)[0], BASE))


def sign(secret, message):
    """The signature, 64 bytes, of a message under a private key of 32 bytes."""
    scalar, prefix = _expand(secret)
    r = int.from_bytes(hashlib.sha512(prefix + message).digest(), "little") % ORDER
    commitment = _encode(_multiply(r, BASE))
    challenge = hashlib.sha512(commitment + public_key(secret) + message).digest()
    s = (r + int.from_bytes(challenge, "little") * scalar) % ORDER
    return commitment + s.to_bytes(32, "little")
