"""Times signed requests and bare Ed25519 signatures in turns. Arguments: key file, URL, rounds, signatures a round. Prints JSON."""

import json
import sys
import time

from cryptography.hazmat.primitives.serialization import load_pem_private_key

from proofgate import Signer

key_file, url = sys.argv[1:3]
rounds, count = map(int, sys.argv[3:])
signer = Signer(key_file)
with open(key_file, "rb") as file:
    key = load_pem_private_key(file.read(), None)
message = b"x" * 600


def sign() -> None:
    signer.sign("POST", url, body=b'{"item":"book","count":2}')


def microseconds(act) -> float:
    start = time.process_time()
    for _ in range(count):
        act()
    return (time.process_time() - start) / count * 1e6


results = {"bare": [], "signed": []}
# The first round warms up.
for turn in range(rounds + 1):
    for name, act in (("bare", lambda: key.sign(message)), ("signed", sign)):
        cost = microseconds(act)
        if turn > 0:
            results[name].append(cost)
print(json.dumps(results))
