"""Creates an order and reads it, with aiohttp 3.12 or later. Arguments: key file, base URL."""

import asyncio
import sys

import aiohttp
import yarl

import proofgate

key_file, base_url = sys.argv[1:]
signer = proofgate.Signer(key_file)


async def sign(request, handler):
    # As yarl sends it. aiohttp calls this for each attempt.
    url = f"{request.url.origin()}{request.url.raw_path_qs}"
    body = await request.body.as_bytes() if request.body else None
    signed = signer.sign(request.method, url, headers=request.headers.items(), body=body)
    request.headers.update(signed.headers)
    return await handler(request)


async def main():
    async with aiohttp.ClientSession(middlewares=[sign]) as session:
        created = await session.post(f"{base_url}/v1/orders", json={"item": "book"}, allow_redirects=False)
        # Without encoded=True, yarl would write other escapes.
        url = yarl.URL(f"{base_url}/v1/orders/17?q=%2f%c3%a9", encoded=True)
        order = await session.get(url, allow_redirects=False)
        print(created.status, order.status)


asyncio.run(main())
