//! Signed tokens of our own (JWS): the assertions of a client.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;

/// A private key, of the kinds that authorization servers know.
pub enum SigningKey {
    /// P-256.
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
    Rs256(RsaKeyPair),
}

impl SigningKey {
    /// Reads a key as PEM has it (PKCS #8).
    ///
    /// # Errors
    /// It is none.
    pub fn from_pem(pem: &str) -> Result<Self, String> {
        let read = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes());
        let key = read.map_err(|_| "its 'clientPrivateKey' is no PEM of 'BEGIN PRIVATE KEY'".to_owned())?;
        let bytes = key.secret_pkcs8_der();
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &SystemRandom::new()) {
            return Ok(Self::Es256(key));
        }
        if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(bytes) {
            return Ok(Self::EdDsa(key));
        }
        RsaKeyPair::from_pkcs8(bytes)
            .map(Self::Rs256)
            .map_err(|_| "its 'clientPrivateKey' is neither P-256, Ed25519 nor RSA of 2048 bits".to_owned())
    }

    /// Returns a token with these members of its header, and claims.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn sign(&self, header: &Value, claims: &Value) -> Result<String, String> {
        let mut header = header.clone();
        header["alg"] = match self {
            Self::Es256(_) => "ES256",
            Self::EdDsa(_) => "EdDSA",
            Self::Rs256(_) => "RS256",
        }
        .into();
        let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encoded(&header), encoded(claims));
        let failed = |_| "the system has no source of random numbers".to_owned();
        let signature = match self {
            Self::Es256(key) => key.sign(&SystemRandom::new(), text.as_bytes()).map_err(failed)?.as_ref().to_vec(),
            Self::EdDsa(key) => key.sign(text.as_bytes()).as_ref().to_vec(),
            Self::Rs256(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).map_err(failed)?;
                signature
            }
        };
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, ED25519, KeyPair as _, UnparsedPublicKey, VerificationAlgorithm};
    use serde_json::json;

    fn pem(bytes: &[u8]) -> String {
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(bytes))
    }

    #[test]
    fn tokens_have_the_signature_of_their_key() {
        let random = SystemRandom::new();
        let ecdsa = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        for (pkcs8, name) in [(ecdsa.as_ref(), "ES256"), (ed25519.as_ref(), "EdDSA")] {
            let key = SigningKey::from_pem(&pem(pkcs8)).expect("a key");
            let token = key.sign(&json!({"typ": "JWT"}), &json!({"iss": "robot"})).expect("a token");
            let (text, signature) = token.rsplit_once('.').expect("a signature");
            let (header, claims) = text.split_once('.').expect("two parts");
            let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).expect("base64");
            let header: Value = serde_json::from_slice(&decoded(header)).expect("JSON");
            assert_eq!(header, json!({"typ": "JWT", "alg": name}));
            assert_eq!(decoded(claims), br#"{"iss":"robot"}"#);
            let (algorithm, public): (&'static dyn VerificationAlgorithm, Vec<u8>) = match &key {
                SigningKey::Es256(key) => (&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref().to_vec()),
                SigningKey::EdDsa(key) => (&ED25519, key.public_key().as_ref().to_vec()),
                SigningKey::Rs256(_) => panic!("an RSA key"),
            };
            let public = UnparsedPublicKey::new(algorithm, public);
            assert!(public.verify(text.as_bytes(), &decoded(signature)).is_ok());
            assert!(public.verify(b"another text", &decoded(signature)).is_err());
        }
        for odd in ["", "-----BEGIN PRIVATE KEY-----", &pem(b"no key"), &pem(&[0; 2000])] {
            assert!(SigningKey::from_pem(odd).is_err(), "{odd}");
        }
    }
}
