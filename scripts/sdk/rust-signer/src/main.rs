//! Signs a request with the crate httpsig-hyper, sends it over HTTP/1.1 as often as asked, and prints each status.
//!
//! Arguments: address, times, key file, algorithm, key ID, tag, nonce or `library`, components with spaces between them, method,
//! URL, body, then `name:value` for each header.
use std::io::{Read, Write};
use std::net::TcpStream;

use http_body_util::{BodyExt, Full};
use httpsig_hyper::prelude::message_component::HttpMessageComponentId;
use httpsig_hyper::prelude::{AlgorithmName, HttpSignatureParams, SecretKey};
use httpsig_hyper::{ContentDigestType, MessageSignatureReqSync, RequestContentDigest};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, times, key_file, algorithm, key_id, tag, nonce, components, method, url, body, headers @ ..] = args.as_slice()
    else {
        return Err("arguments are missing".into());
    };
    let mut builder = http::Request::builder().method(method.as_str()).uri(url.as_str());
    for line in headers {
        let (name, value) = line.split_once(':').ok_or("no header")?;
        builder = builder.header(name, value);
    }
    let plain = builder.body(Full::new(body.as_bytes()))?;
    let covered = components
        .split(' ')
        .map(HttpMessageComponentId::try_from)
        .collect::<Result<Vec<_>, _>>()?;
    let algorithm = match algorithm.as_str() {
        "ed25519" => AlgorithmName::Ed25519,
        _ => AlgorithmName::EcdsaP256Sha256,
    };
    let key = SecretKey::from_pem(&algorithm, &std::fs::read_to_string(key_file)?)?;
    let mut params = HttpSignatureParams::try_new(&covered)?;
    params.set_expires_with_duration(Some(60)).set_key_info(&key).set_keyid(key_id).set_tag(tag);
    if nonce == "library" {
        params.set_random_nonce();
    } else {
        params.set_nonce(nonce);
    }
    // A request without a body has no digest.
    if body.is_empty() {
        let mut request = plain;
        request.set_message_signature_sync(&params, &key, Some("sig"))?;
        return send(address, times.parse()?, request.into_parts().0, b"");
    }
    let mut request = futures::executor::block_on(plain.set_content_digest(&ContentDigestType::Sha256))?;
    request.set_message_signature_sync(&params, &key, Some("sig"))?;
    let (parts, body) = request.into_parts();
    send(address, times.parse()?, parts, &futures::executor::block_on(body.collect())?.to_bytes())
}

fn send(address: &str, times: usize, parts: http::request::Parts, body: &[u8]) -> Result<(), Failure> {
    let target = parts.uri.path_and_query().ok_or("no path")?;
    let host = parts.uri.authority().ok_or("no authority")?;
    let mut sent = format!("{} {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n", parts.method).into_bytes();
    for (name, value) in &parts.headers {
        sent.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    if !body.is_empty() {
        sent.extend(format!("content-length: {}\r\n", body.len()).as_bytes());
    }
    sent.extend([b"\r\n", body].concat());
    for _ in 0..times {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(&sent)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let text = String::from_utf8_lossy(&answer);
        println!("{}", text.split(' ').nth(1).ok_or("no status")?);
    }
    Ok(())
}
