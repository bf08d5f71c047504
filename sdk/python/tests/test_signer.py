"""Signing with key files: errors and their codes, reloading, and what a repr shows."""

import json
import os
import unittest

from fixture import install_pair, profile, temporary_folder, write_enrolled, write_private

from proofgate import BodyDigest, Signer, SigningError
from proofgate._signer import is_credential

ORIGIN = "https://api.shop.example"
URL = f"{ORIGIN}/v1/orders"


# What all SDKs remove and keep.
CALLER_HEADERS = os.path.join(os.path.dirname(__file__), "../../../test/caller/sdk/caller-headers.json")


class SignerTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(temporary_folder())

    def code_of(self, act):
        with self.assertRaises(SigningError) as caught:
            act()
        return caught.exception.code

    def change_state(self, key_file, change):
        path = f"{key_file}.enrollment.json"
        with open(path) as file:
            state = json.load(file)
        change(state)
        write_private(path, json.dumps(state))

    def test_removes_the_headers_that_all_sdks_remove(self):
        with open(CALLER_HEADERS) as file:
            headers = json.load(file)
        for kind, removed in (("credentials", True), ("others", False)):
            for name, value in headers[kind]:
                self.assertEqual(is_credential(name, value), removed, (name, value))

    def test_reads_what_the_command_line_reads_and_fails_with_its_codes(self):
        key_file, _ = write_enrolled(self.folder, [profile(ORIGIN)])
        cases = {
            "key_revoked": lambda s: s["enrolled"]["derived_key"].update(status="revoked"),
            "key_expired": lambda s: s["enrolled"]["derived_key"].update(
                status="active", expires_at="2020-01-01T00:00:00Z"
            ),
            "enrollment_state_mismatch": lambda s: s.update(key_thumbprint="A" * 43),
            "enrollment_state_invalid": lambda s: s.update(format="other"),
        }
        for code, change in cases.items():
            self.change_state(key_file, change)
            self.assertEqual(self.code_of(lambda: Signer(key_file)), code)
        os.unlink(f"{key_file}.enrollment.json")
        self.assertEqual(self.code_of(lambda: Signer(key_file)), "enrollment_missing")
        os.chmod(key_file, 0o640)
        self.assertEqual(self.code_of(lambda: Signer(key_file)), "file_permissions")
        write_private(f"{key_file}.2", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
        self.assertEqual(self.code_of(lambda: Signer(f"{key_file}.2")), "private_key_invalid")
        self.assertEqual(self.code_of(lambda: Signer(f"{key_file}.3")), "file_not_found")

    def test_rejects_a_state_that_names_a_member_twice(self):
        key_file, _ = write_enrolled(self.folder, [profile(ORIGIN)])
        path = f"{key_file}.enrollment.json"
        with open(path) as file:
            text = file.read()
        write_private(path, text.replace('"format":', '"format": "x", "format":', 1))
        self.assertEqual(self.code_of(lambda: Signer(key_file)), "enrollment_state_invalid")

    def test_selects_profiles_with_the_codes_of_the_command_line(self):
        routes = [
            profile(ORIGIN),
            profile(ORIGIN, route_id="other", name="second"),
            profile(ORIGIN, route_id="one", path_template="/v2/{id}", signed_headers=["x-tenant"]),
            profile(ORIGIN, route_id="export", path_template="/v2/orders:export"),
        ]
        key_file, _ = write_enrolled(self.folder, routes)
        signer = Signer(key_file)

        def code(method, url, **more):
            return self.code_of(lambda: signer.sign(method, url, **more))

        self.assertEqual(code("GET", URL), "profile_ambiguous")
        self.assertEqual(Signer(key_file, profile="second").sign("GET", URL).route_id, "other")
        named = Signer(key_file, profile="one")
        self.assertEqual(self.code_of(lambda: named.sign("GET", URL)), "profile_mismatch")
        self.assertEqual(code("PUT", URL), "profile_not_found")
        self.assertEqual(code("GET", "https://evil.example/v2/7"), "origin_not_allowed")
        self.assertEqual(code("GET", f"{ORIGIN}/v2/orders%3Aexport"), "profile_not_found")
        self.assertEqual(code("GET", f"{ORIGIN}/v2/7"), "header_missing")
        twice = [("X-Tenant", "a"), ("x-tenant", "b")]
        self.assertEqual(code("GET", f"{ORIGIN}/v2/7", headers=twice), "header_repeated")
        self.assertEqual(code("GET", f"{ORIGIN}/v2/7", headers={"x-tenant": "\u00e9"}), "header_invalid")
        self.assertEqual(code("GET", f"{ORIGIN}/v2/a/../7"), "url_not_canonical")
        self.assertEqual(code("GET", "https://user@api.shop.example/v2/7"), "url_invalid")
        self.assertEqual(code("G T", URL), "method_invalid")

    def test_signs_a_digest_as_the_body_itself(self):
        import hashlib

        key_file, _ = write_enrolled(self.folder, [profile(ORIGIN, method="POST")])
        signer = Signer(key_file)
        signer._now, signer._new_jti = (lambda: 1_800_000_000), (lambda: "A" * 22)
        body = b"x" * 100_000
        digest = BodyDigest(hashlib.sha256(body).digest(), len(body))
        of_bytes = signer.sign("POST", URL, body=body)
        self.assertEqual(of_bytes, signer.sign("POST", URL, body=digest))
        self.assertNotEqual(of_bytes, signer.sign("POST", URL))

    def test_reuses_the_passport_and_never_the_proof(self):
        key_file, _ = write_enrolled(self.folder, [profile(ORIGIN)])
        signer = Signer(key_file)
        seen = {}
        for now in (1000, 1199, 1200, 999):
            signer._now = lambda now=now: now
            first, second = signer.sign("GET", URL), signer.sign("GET", URL)
            self.assertEqual(first.headers[0], second.headers[0])
            self.assertNotEqual(first.headers[1:], second.headers[1:])
            seen[now] = str(first.headers[0][1])
        self.assertEqual(seen[1000], seen[1199])
        # After two thirds of its life, and when the clock went back.
        self.assertEqual(len(set(seen.values())), 3)

    def test_follows_the_agent_and_keeps_the_old_key_when_the_new_one_is_broken(self):
        key_file = install_pair(self.folder, 1, [profile(ORIGIN)])
        signer = Signer(key_file)
        self.assertEqual(signer.sign("GET", URL).key_id, "dk_1")
        install_pair(self.folder, 2, [profile(ORIGIN)])
        signer._checked_at -= 10
        self.assertEqual(signer.sign("GET", URL).key_id, "dk_2")
        install_pair(self.folder, 3, [profile(ORIGIN)])
        os.unlink(os.path.join(self.folder, ".key.pem.3", "key.pem.enrollment.json"))
        signer._checked_at -= 10
        with self.assertLogs("proofgate", "WARNING") as logs:
            self.assertEqual(signer.sign("GET", URL).key_id, "dk_2")
        self.assertIn("enrollment_missing", logs.output[0])

    def test_stops_signing_once_the_state_says_that_the_key_was_revoked(self):
        key_file, _ = write_enrolled(self.folder, [profile(ORIGIN)])
        signer = Signer(key_file)
        self.assertEqual(signer.sign("GET", URL).key_id, "dk_1")
        with open(f"{key_file}.enrollment.json") as file:
            state = json.load(file)
        state["enrolled"]["derived_key"].update(status="revoked")
        with open(f"{key_file}.enrollment.json", "w") as file:
            json.dump(state, file)
        signer._checked_at -= 10
        for _ in range(2):
            with self.assertRaises(SigningError) as raised:
                signer.sign("GET", URL)
            self.assertEqual(raised.exception.code, "key_revoked")

    def test_keeps_a_nonce_of_each_origin(self):
        key_file, _ = write_enrolled(self.folder, [profile(ORIGIN)])
        signer = Signer(key_file, proof="dpop")
        asks = 'Passport, DPoP error="use_dpop_nonce", algs="ES256"'
        for status, challenge, nonces, expected, kept in (
            (200, "", ["n-1"], False, "n-1"),
            (401, asks, ["n-2"], True, "n-2"),
            (403, asks, ["n-3"], False, "n-3"),
            (401, 'DPoP error="invalid_token"', ["n-4"], False, "n-4"),
            (401, asks, [], False, "n-4"),
            (401, asks, ["n-5", "n-6"], False, "n-4"),
            (401, asks, ['n "5"'], False, "n-4"),
        ):
            headers = [("WWW-Authenticate", challenge), *(("dpop-nonce", nonce) for nonce in nonces)]
            self.assertEqual(signer._read_answer(URL, status, headers), expected)
            self.assertEqual(signer._nonces.of(ORIGIN), kept)
        for number in range(256):
            signer._read_answer(f"https://{number}.example/", 200, [("DPoP-Nonce", "n")])
        self.assertIsNone(signer._nonces.of(ORIGIN))
        transcripts = Signer(key_file)
        self.assertFalse(transcripts._read_answer(URL, 401, [("WWW-Authenticate", asks), ("DPoP-Nonce", "n")]))

    def test_shows_no_secret(self):
        key_file, _ = write_enrolled(self.folder, [profile(ORIGIN)])
        signer = Signer(key_file)
        signed = signer.sign("GET", URL)
        shown = "".join(map(repr, (signer, signed, signed.headers, signer._loaded.identity, vars(signed))))
        for _, value in signed.headers:
            for part in str(value).replace("Passport ", "").split("."):
                self.assertNotIn(part, shown)


if __name__ == "__main__":
    unittest.main()
