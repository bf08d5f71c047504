"""The auth object with httpx and requests, against a server that compares each request with its proof."""

import asyncio
import contextlib
import io
import json
import os
import threading
import time
import unittest

import httpx
import requests
import urllib3
from fixture import Server, Tunnel, install_pair, profiles, temporary_folder, write_enrolled

import proofgate
from proofgate import Auth, Denied, Signer, SigningError


REDIRECTS = os.path.join(os.path.dirname(__file__), "../../../test/caller/sdk/redirects.json")


class AuthTest(unittest.TestCase):
    proof = "transcript-v1"
    proof_headers = ("authorization", "x-proofgate-transcript", "x-proofgate-signature")

    def setUp(self):
        self.folder = self.enterContext(temporary_folder())
        self.server = Server()
        self.addCleanup(self.server.close)
        self.key_file, _ = write_enrolled(self.folder, profiles(self.server.origin))
        self.auth = self.make_auth()
        self.url = f"{self.server.origin}/v1/orders"

    def code_of(self, act):
        with self.assertRaises(SigningError) as caught:
            act()
        return caught.exception.code

    def make_auth(self, key_file=None, **options):
        return Auth(key_file or self.key_file, proof=self.proof, **options)

    def httpx_client(self, **options):
        return self.enterContext(httpx.Client(auth=self.auth, trust_env=False, **options))

    def session(self):
        session = self.enterContext(requests.Session())
        session.auth, session.trust_env = self.auth, False
        return session

    def test_signs_what_httpx_sends(self):
        client = self.httpx_client()
        self.assertEqual(client.get(self.url, params={"q": "a b/\u00e9", "e": ""}).status_code, 200)
        self.assertEqual(client.post(self.url, json={"a": 1}).status_code, 200)
        self.assertEqual(client.put(self.url).status_code, 200)
        self.assertEqual(client.post(self.url, files={"f": io.BytesIO(b"x" * 9000)}).status_code, 200)
        self.assertEqual(client.get(f"{self.url}/caf%C3%A9?x=%2f").status_code, 200)
        self.assertEqual(len({arrived.transcript["jti"] for arrived in self.server.arrived}), 5)

    def test_signs_what_async_httpx_sends(self):
        async def send():
            async with httpx.AsyncClient(auth=self.auth, trust_env=False) as client:
                answers = [client.post(self.url, content=b"%d" % i) for i in range(16)]
                return [answer.status_code for answer in await asyncio.gather(*answers)]

        self.assertEqual(asyncio.run(send()), [200] * 16)

    def test_signs_what_requests_sends(self):
        session = self.session()
        self.assertEqual(session.get(self.url, params={"q": "a b/\u00e9", "e": ""}).status_code, 200)
        self.assertEqual(session.get(f"{self.url}/caf%c3%a9%7e?x=%2f%7E|").status_code, 200)
        self.assertEqual(session.post(self.url, json={"a": 1}).status_code, 200)
        self.assertEqual(session.post(self.url, data="caf\u00e9").status_code, 200)
        self.assertEqual(session.put(self.url).status_code, 200)
        file = io.BytesIO(b"abcdef")
        file.seek(2)
        self.assertEqual(session.post(self.url, data=file).status_code, 200)
        self.assertEqual(self.server.arrived[-1].body, b"cdef")

    def test_refuses_streams_that_cannot_be_read_twice_unless_the_body_is_not_bound(self):
        def stream():
            yield b"part"

        client, session = self.httpx_client(), self.session()
        self.assertEqual(self.code_of(lambda: client.post(self.url, content=stream())), "body_not_replayable")
        self.assertEqual(self.code_of(lambda: session.post(self.url, data=stream())), "body_not_replayable")
        self.assertEqual(self.server.arrived, [])
        unbound = {"headers": {"Content-Length": "4"}}
        answer = client.post(f"{self.server.origin}/v1/uploads", content=stream(), **unbound)
        self.assertEqual(answer.status_code, 200)

    def test_refuses_other_origins_and_another_host(self):
        client, session = self.httpx_client(), self.session()
        for send in (client.get, session.get):
            self.assertEqual(self.code_of(lambda: send("http://127.0.0.1:9/v1/orders")), "origin_not_allowed")
            other = {"Host": "evil.example"}
            self.assertEqual(self.code_of(lambda: send(self.url, headers=other)), "host_not_allowed")
        self.assertEqual(self.server.arrived, [])

    def test_replaces_credentials_of_the_caller(self):
        given = {"Authorization": "Passport x", "X-Proofgate-Signature": "x", "X_Proofgate_Subject": "root"}
        for send in (self.httpx_client().get, self.session().get):
            self.assertEqual(send(self.url, headers=given).status_code, 200)
            headers = self.server.arrived[-1].headers
            self.assertEqual(len(headers.get_all(self.proof_headers[-1])), 1)
            self.assertNotIn("x_proofgate_subject", headers)

    def test_refuses_to_replace_an_authorization_of_the_application(self):
        for send in (self.httpx_client().get, self.session().get):
            code = self.code_of(lambda: send(self.url, headers={"Authorization": "Bearer x"}))
            self.assertEqual(code, "header_reserved")
        self.assertEqual(self.server.arrived, [])

    def test_keeps_the_authorization_of_the_application_where_the_route_says_so(self):
        url = f"{self.server.origin}/v1/own"
        for send in (self.httpx_client().get, self.session().get):
            for given, kept in (("Bearer x", "Bearer x"), ("Passport x", None)):
                self.assertEqual(send(url, headers={"Authorization": given}).status_code, 200)
                headers = self.server.arrived[-1].headers
                self.assertEqual(headers["authorization"], kept)
                self.assertEqual("x-proofgate-passport" in headers, self.proof == "transcript-v1")

    def test_signs_a_redirect_within_the_origins_anew(self):
        def answer(arrived):
            moved = {"Location": "/v1/orders/new"}
            return (307, moved, "") if arrived.target == "/v1/orders" else (200, {}, "ok")

        self.server.answer = answer
        client, session = self.httpx_client(follow_redirects=True), self.session()
        posts = (
            lambda body: client.post(self.url, content=body),
            lambda body: session.post(self.url, data=body),
            lambda body: session.post(self.url, data=io.BytesIO(body)),
        )
        for post in posts:
            for body in (b"data", b"x" * 100_000):
                self.server.arrived.clear()
                self.assertEqual(post(body).status_code, 200)
                self.assertTrue(self.server.arrived[-1].fits)
                self.assertEqual(self.server.arrived[-1].body, body)
                for arrived in self.server.arrived:
                    self.assertTrue(arrived.fits or arrived.transcript is None)

    def test_follows_the_redirects_that_all_sdks_follow(self):
        with open(REDIRECTS, encoding="utf-8") as file:
            cases = json.load(file)
        self.assertEqual(len(cases), 8)
        for case in cases:
            for status, method, body in ((302, "GET", b""), (307, "POST", b"data")):
                for way in (self.by_httpx, self.by_async_httpx, self.by_requests):
                    with self.subTest(case, method=method, way=way.__name__):
                        self.check_redirect(case, status, method, body, way)

    def check_redirect(self, case, status, method, body, way):
        elsewhere = Server()
        self.addCleanup(elsewhere.close)
        to = self.server if case["to"] == "same" else elsewhere
        origins = [self.server.origin]
        if to is elsewhere and case["has_profile"]:
            origins.append(elsewhere.origin)
        signed = [{**profile, "origins": origins} for profile in profiles(self.server.origin)]
        self.key_file, _ = write_enrolled(self.folder, signed)
        path = "/v1/new" if case["has_profile"] or to is elsewhere else "/new"
        moved = (status, {"Location": f"{to.origin}{path}"}, "")
        self.server.answer = lambda a: moved if a.target == "/v1/orders" else (200, {}, "ok")
        self.server.arrived.clear()
        auth = self.make_auth(follow=case["follow"])
        if case["outcome"] == "signed":
            self.assertEqual(way(auth, method, body), 200)
            self.assertTrue(to.arrived[-1].fits)
            self.assertEqual(to.arrived[-1].body, body)
        else:
            self.assertEqual(self.code_of(lambda: way(auth, method, body)), case["outcome"])
            self.assertEqual([arrived.target for arrived in self.server.arrived], ["/v1/orders"])
            self.assertEqual(elsewhere.arrived, [])

    def by_httpx(self, auth, method, body):
        with httpx.Client(auth=auth, trust_env=False, follow_redirects=True) as client:
            return client.request(method, self.url, content=body).status_code

    def by_async_httpx(self, auth, method, body):
        async def send():
            async with httpx.AsyncClient(auth=auth, trust_env=False, follow_redirects=True) as client:
                return (await client.request(method, self.url, content=body)).status_code

        return asyncio.run(send())

    def by_requests(self, auth, method, body):
        with requests.Session() as session:
            session.auth, session.trust_env = auth, False
            return session.request(method, self.url, data=body).status_code

    def test_sends_no_proof_twice(self):
        faults = [lambda _, s=status: (s, {"Retry-After": "0"}, "") for status in (408, 421, 425, 503)]
        faults.append(lambda _: None)
        retry = urllib3.Retry(
            3, status_forcelist=[408, 421, 425, 503], allowed_methods=None, backoff_factor=0, raise_on_status=False
        )
        client, session = self.httpx_client(), self.session()
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
        for fault in faults:
            for send, sent in ((client.request, 1), (session.request, 3)):
                for method in ("GET", "PUT", "POST"):
                    self.server.answer = lambda _: (200, {}, "ok")
                    send(method, self.url, **({"data": b"x"} if method != "GET" else {}))
                    self.server.arrived.clear()
                    faulty = iter((fault, fault))
                    self.server.answer = lambda a: next(faulty, lambda _: (200, {}, "ok"))(a)
                    with contextlib.suppress(httpx.RemoteProtocolError, httpx.ReadError):
                        send(method, self.url, **({"data": b"x"} if method != "GET" else {}))
                    self.assertEqual(len(self.server.arrived), sent)
                    self.assertEqual(len({a.transcript["jti"] for a in self.server.arrived}), sent)
                    self.assertTrue(all(a.fits for a in self.server.arrived))

    def test_binds_the_body_of_a_query(self):
        for send in (self.httpx_client().request, self.session().request):
            self.assertEqual(send("QUERY", self.url, data={"q": "a"}).status_code, 200)
            self.assertEqual(self.server.arrived[-1].body, b"q=a")
            self.assertNotEqual(self.server.arrived[-1].transcript["content-sha256"], "-")

    def test_the_adapter_signs_each_attempt_also_through_a_tunnel(self):
        retry = urllib3.Retry(
            3, status_forcelist=[503], allowed_methods=None, backoff_factor=0, raise_on_status=False
        )
        for scheme in ("http", "https"):
            server = Server(tls_folder=self.folder if scheme == "https" else None)
            self.addCleanup(server.close)
            tunnel = Tunnel(server)
            self.addCleanup(tunnel.close)
            key_file, _ = write_enrolled(self.enterContext(temporary_folder()), profiles(server.origin))
            for proxies in ({}, {"https": tunnel.url}):
                with requests.Session() as session:
                    session.auth, session.trust_env, session.proxies = self.make_auth(key_file), False, proxies
                    session.verify = server.ca_file
                    session.mount(server.origin, proofgate.RetryAdapter(max_retries=retry))
                    server.arrived.clear()
                    server.answer = lambda _: (503 if len(server.arrived) < 3 else 200, {}, "")
                    answer = session.post(f"{server.origin}/v1/orders", data=b"x")
                    self.assertEqual((answer.status_code, len(server.arrived)), (200, 3))
                    self.assertEqual(len({a.transcript["jti"] for a in server.arrived}), 3)
                    self.assertTrue(all(a.fits for a in server.arrived))
            self.assertEqual(tunnel.opened, 1 if scheme == "https" else 0)

    def test_signs_what_goes_out_whatever_the_url_has(self):
        parts = ("%c3%a9", "\u00e9", "[x]", "|", "{a}", "%5b", "a b", "%20", "'", '"', "(", "*", "<")
        client, session = self.httpx_client(), self.session()
        for part in parts:
            bare = [f"{self.url}?"] if self.proof == "transcript-v1" else []
            for url in (f"{self.url}/x{part}", f"{self.url}?q={part}&{part}=?&e", f"{self.url}??a#f", *bare):
                for send in (client.get, session.get):
                    self.assertEqual(send(url).status_code, 200, url)
            for send in (client.get, session.get):
                self.assertEqual(send(self.url, params={part: part}).status_code, 200, part)

    def test_returns_a_redirect_that_is_not_to_be_followed(self):
        self.server.answer = lambda _: (302, {"Location": "http://127.0.0.1:9/v1/orders"}, "")
        self.assertEqual(self.httpx_client().get(self.url).status_code, 302)
        self.assertEqual(self.session().get(self.url, allow_redirects=False).status_code, 302)

    def test_keeps_the_trace_of_the_application(self):
        names = []
        extensions = {"trace": lambda name, info: names.append(name)}
        self.assertEqual(self.httpx_client().get(self.url, extensions=extensions).status_code, 200)
        self.assertIn("http11.send_request_headers.started", names)

    def test_reports_a_denial_on_request(self):
        problem = '{"reason":"jti_replay","detail":"x","decision_id":"d_7","route_id":"orders"}'
        headers = {"X-Proofgate-Reason": "jti_replay", "Retry-After": "3"}
        self.server.answer = lambda _: (403, headers, problem)
        for send in (self.httpx_client().get, self.session().get):
            with self.assertRaises(Denied) as caught:
                proofgate.raise_for_denial(send(self.url))
            denied = caught.exception
            self.assertEqual((denied.status, denied.reason, denied.detail), (403, "jti_replay", "x"))
            self.assertEqual((denied.decision_id, denied.retry_after_seconds), ("d_7", 3))
        self.server.answer = lambda _: (429, headers, "")
        self.assertEqual(proofgate.denial_of(self.httpx_client().get(self.url)).status, 429)
        self.server.answer = lambda _: (403, {}, "")
        self.assertIsNone(proofgate.denial_of(self.httpx_client().get(self.url)))

    def test_warns_of_a_wrong_clock(self):
        for offset, word in ((-30, "ahead"), (30, "behind")):
            self.server.clock_offset = offset
            for make in (self.httpx_client, self.session):
                self.auth = self.make_auth()
                client = make()
                with self.assertLogs("proofgate", "WARNING") as logs:
                    client.get(self.url)
                    client.get(self.url)
                self.assertEqual(len(logs.output), 1)
                self.assertIn(word, logs.output[0])

    def test_a_denial_says_what_the_code_does_not(self):
        for reason, offset, text in (
            ("jti_replay", -60, "may have been executed: ask the API before you send it again"),
            ("invalid_request_proof", 45, "s behind the server's"),
            ("invalid_request_proof", -45, "s ahead of the server's"),
        ):
            self.server.clock_offset = offset
            self.server.answer = lambda _: (401, {"X-Proofgate-Reason": reason}, "")
            for send in (self.httpx_client().get, self.session().get):
                denied = proofgate.denial_of(send(self.url))
                self.assertIn(text, str(denied))
                expected = -offset if reason == "invalid_request_proof" else None
                if expected is None:
                    self.assertIsNone(denied.clock_ahead_seconds)
                else:
                    self.assertAlmostEqual(denied.clock_ahead_seconds, expected, delta=2)

    def test_a_denial_says_nothing_of_a_right_clock(self):
        self.server.answer = lambda _: (401, {"X-Proofgate-Reason": "invalid_request_proof"}, "")
        denied = proofgate.denial_of(self.httpx_client().get(self.url))
        self.assertEqual((str(denied), denied.clock_ahead_seconds), ("401 invalid_request_proof", None))

    def test_shows_no_secret(self):
        client, session = self.httpx_client(), self.session()
        shown = repr(self.auth)
        for answer in (client.get(self.url), session.get(self.url)):
            request = answer.request
            shown += repr(request) + repr(request.headers) + repr(dict(request.headers)) + repr(vars(request))
        for arrived in self.server.arrived:
            for name in self.proof_headers:
                self.assertNotIn(arrived.headers[name].replace("Passport ", ""), shown)

    def test_replaces_the_key_while_32_threads_send(self):
        folder = self.enterContext(temporary_folder())
        key_file = install_pair(folder, 1, profiles(self.server.origin))
        signer = Signer(key_file, proof=self.proof)
        client = self.enterContext(
            httpx.Client(auth=Auth(signer=signer), trust_env=False, timeout=30)
        )
        statuses, failures, done = [], [], threading.Event()

        def send():
            while not done.is_set():
                try:
                    statuses.append(client.get(self.url).status_code)
                except Exception as error:  # noqa: BLE001
                    failures.append(error)

        threads = [threading.Thread(target=send) for _ in range(32)]
        for thread in threads:
            thread.start()
        for number in range(2, 12):
            install_pair(folder, number, profiles(self.server.origin))
            deadline = time.monotonic() + 60
            while self.signed_with(f"dk_{number}") < 64 and not failures:
                if time.monotonic() > deadline:
                    failures.append(f"dk_{number} is not used")
                signer._checked_at -= 10
                time.sleep(0.01)
        done.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(set(statuses), {200})

    def signed_with(self, key_id):
        """Among the newest: to read all of them again and again would take the processor from the senders."""
        return sum(arrived.transcript["key-id"] == key_id for arrived in self.server.arrived[-256:])


class HttpMessageAuthTest(AuthTest):
    """The same with HTTP message signatures."""

    proof = "http-message-signatures"
    proof_headers = ("signature-input", "signature")

    def test_refuses_what_no_verifier_accepts(self):
        for send in (self.httpx_client().get, self.session().get):
            for name, value in (("Signature", 'keyId="app"'), ("Signature-Input", 'app=("@method")')):
                self.assertEqual(self.code_of(lambda: send(self.url, headers={name: value})), "header_reserved")
        # requests sends no bare "?".
        bare = f"{self.url}?"
        self.assertEqual(self.code_of(lambda: self.httpx_client().get(bare)), "url_not_canonical")
        self.assertEqual(self.server.arrived, [])

    def test_replaces_an_earlier_proof(self):
        signer = Signer(self.key_file, proof=self.proof)
        earlier = dict(signer.sign("POST", self.url, body="other").headers)
        for send in (self.httpx_client().request, self.session().request):
            for method, data in (("POST", b"data"), ("GET", None)):
                self.assertEqual(send(method, self.url, data=data, headers=earlier).status_code, 200)
                self.assertNotEqual(self.server.arrived[-1].headers["signature"], earlier["Signature"])

    def test_keeps_the_digest_of_a_body_that_is_not_bound(self):
        url, given = f"{self.server.origin}/v1/uploads", {"Content-Digest": "sha-512=:AAAA:"}
        for send in (self.httpx_client().post, self.session().post):
            self.assertEqual(send(url, data=b"data", headers=given).status_code, 200)
            self.assertEqual(self.server.arrived[-1].headers["content-digest"], given["Content-Digest"])


class DpopAuthTest(AuthTest):
    """The same with DPoP. test/caller/sdk/dpop.extended.test.ts has its nonces."""

    proof = "dpop"
    proof_headers = ("authorization", "dpop")

    def test_refuses_streams_that_cannot_be_read_twice_unless_the_body_is_not_bound(self):
        def stream():
            yield b"part"

        answer = self.httpx_client().post(self.url, content=stream(), headers={"Content-Length": "4"})
        self.assertEqual(answer.status_code, 200)

    def test_binds_the_body_of_a_query(self):
        # The proof covers no body.
        for send in (self.httpx_client().request, self.session().request):
            self.assertEqual(send("QUERY", self.url, data={"q": "a"}).status_code, 200)

    def test_keeps_the_authorization_of_the_application_where_the_route_says_so(self):
        for send in (self.httpx_client().get, self.session().get):
            self.assertEqual(self.code_of(lambda: send(f"{self.server.origin}/v1/own")), "header_reserved")
        self.assertEqual(self.server.arrived, [])

    def test_refuses_tokens_and_proofs_of_the_application(self):
        for send in (self.httpx_client().get, self.session().get):
            for given in ({"DPoP": "ey.ey.AA"}, {"Authorization": "DPoP ey.ey.AA", "DPoP": "ey.ey.AA"}):
                self.assertEqual(self.code_of(lambda: send(self.url, headers=given)), "header_reserved")
        self.assertEqual(self.server.arrived, [])

    def test_replaces_an_earlier_proof(self):
        earlier = dict(Signer(self.key_file, proof=self.proof).sign("GET", self.url).headers)
        for send in (self.httpx_client().get, self.session().get):
            self.assertEqual(send(self.url, headers=earlier).status_code, 200)
            self.assertNotEqual(self.server.arrived[-1].headers["dpop"], earlier["DPoP"])


if __name__ == "__main__":
    unittest.main()
