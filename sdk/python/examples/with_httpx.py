"""Creates an order and reads it, with httpx. Arguments: key file, base URL."""

import sys

import httpx

import proofgate

key_file, base_url = sys.argv[1:]

with httpx.Client(auth=proofgate.Auth(key_file), base_url=base_url) as client:
    created = client.post("/v1/orders", json={"item": "book", "count": 2})
    proofgate.raise_for_denial(created)
    order = client.get("/v1/orders/17")
    proofgate.raise_for_denial(order)
    print(created.status_code, order.status_code)
