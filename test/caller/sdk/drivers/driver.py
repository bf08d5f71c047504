"""Signs requests from standard input, one JSON line each, with the Python SDK. ../README.md describes the lines."""

import base64
import json
import sys

from proofgate import Signer, SigningError


def main() -> None:
    signer = Signer(sys.argv[1], proof=sys.argv[2])
    for line in sys.stdin:
        job = json.loads(line)
        # Only tests choose the clock and the identifiers.
        signer._now = lambda: job["now"]
        signer._new_jti = lambda: job["jti"]
        print(json.dumps(answer(signer, job)), flush=True)


def answer(signer: Signer, job: dict) -> dict:
    body = job["body_base64"]
    try:
        signed = signer.sign(
            job["method"],
            job["url"],
            headers=[(name, value) for name, value in job["headers"]],
            body=None if body is None else base64.b64decode(body),
            dpop_nonce=job.get("dpop_nonce"),
        )
    except SigningError as error:
        return {"id": job["id"], "headers": [], "transcript_base64": "", "error": error.code}
    transcript = dict(signed.headers).get("X-Proofgate-Transcript", "")
    padded = transcript.replace("-", "+").replace("_", "/") + "=" * (-len(transcript) % 4)
    return {"id": job["id"], "headers": signed.headers, "transcript_base64": padded}


main()
