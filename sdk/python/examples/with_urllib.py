"""Creates an order with the standard library, as with any client that takes headers. Arguments: key file, base URL."""

import sys
import urllib.request

import proofgate

key_file, base_url = sys.argv[1:]
url, body = f"{base_url}/v1/orders", b'{"item":"book","count":2}'

signed = proofgate.Signer(key_file).sign("POST", url, body=body)
request = urllib.request.Request(url, data=body, headers=dict(signed.headers), method="POST")
with urllib.request.urlopen(request) as answer:
    print(answer.status)
