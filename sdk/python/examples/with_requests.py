"""Creates an order, with requests. Arguments: key file, base URL."""

import sys

import requests

import proofgate

key_file, base_url = sys.argv[1:]

with requests.Session() as session:
    session.auth = proofgate.Auth(key_file)
    created = session.post(f"{base_url}/v1/orders", json={"item": "book", "count": 2})
    try:
        proofgate.raise_for_denial(created)
        print(created.status_code)
    except proofgate.Denied as denied:
        print(denied.reason, denied.detail, denied.decision_id)
