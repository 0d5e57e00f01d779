//! Tokens of an issuer (JWT): their signatures, claims and scopes; the keys of the issuer.

use codecall_base::error::Error;
use codecall_base::files;
use codecall_config::{HttpJwt, JwtAlgorithm};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result as JwtResult};
use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::signature::Verifier;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey, Validation};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Maximum size of the keys of an issuer, in bytes.
const MAX_JWKS_BYTES: usize = 1 << 20;
/// Maximum length of a token, in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;
/// Keys are read again after this time, and when a token names another key, but not more often than that.
const MAX_AGE: Duration = Duration::from_secs(3_600);
const MIN_AGE: Duration = Duration::from_secs(5);
/// How long the server of the keys may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// By how many seconds clocks may differ.
const LEEWAY: u64 = 30;

/// The sender of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub name: String,
    /// The client that the token was issued to, if it says so.
    pub client: Option<String>,
    pub scopes: BTreeSet<String>,
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the token is not valid: {0}")]
    Invalid(&'static str),
    #[error("the keys of the issuer cannot be read")]
    NoKeys,
}

/// Checks tokens of an issuer.
pub struct Issuer {
    config: HttpJwt,
    algorithms: Vec<Algorithm>,
    validation: Validation,
    client: reqwest::Client,
    keys: RwLock<Keys>,
    /// Held by whoever reads the keys.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Clone, Default)]
struct Keys {
    set: Arc<Vec<Jwk>>,
    read: Option<Instant>,
}

#[derive(Deserialize)]
struct Claims {
    sub: Option<String>,
    client_id: Option<String>,
    azp: Option<String>,
    scope: Option<String>,
    /// A text or a list, as some issuers have it.
    scp: Option<Scopes>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Scopes {
    Text(String),
    List(Vec<String>),
}

impl Issuer {
    /// Creates the checks of a configuration. `resource` is this server.
    ///
    /// # Errors
    /// The HTTP client cannot be created.
    pub fn new(config: &HttpJwt, resource: &str) -> Result<Self, Error> {
        // It fails if the process has installed one already, which is used then.
        let _ = PROVIDER.install_default();
        let algorithms = match config.algorithms.as_slice() {
            [] => vec![Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA],
            some => some
                .iter()
                .map(|algorithm| match algorithm {
                    JwtAlgorithm::Rs256 => Algorithm::RS256,
                    JwtAlgorithm::Es256 => Algorithm::ES256,
                    JwtAlgorithm::EdDsa => Algorithm::EdDSA,
                })
                .collect(),
        };
        let mut validation = Validation::new(Algorithm::RS256);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "aud", "iss"]);
        validation.set_issuer(&[&config.issuer]);
        match config.audience.as_slice() {
            [] => validation.set_audience(&[resource]),
            some => validation.set_audience(some),
        }
        let client = super::client(TIMEOUT).map_err(|error| Error::Config(format!("http.jwt: {error}")))?;
        Ok(Self {
            config: config.clone(),
            algorithms,
            validation,
            client,
            keys: RwLock::default(),
            reading: tokio::sync::Mutex::default(),
        })
    }

    /// Checks a token.
    ///
    /// # Errors
    /// It is refused.
    pub async fn check(&self, token: &str) -> Result<Subject, Refused> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Refused::Invalid("it is too long"));
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| Refused::Invalid("it is not a JWT"))?;
        if !self.algorithms.contains(&header.alg) {
            return Err(Refused::Invalid("its algorithm is not accepted"));
        }
        if header.crit.is_some() {
            return Err(Refused::Invalid("it has critical headers"));
        }
        let mut keys = self.keys(false).await?;
        let mut key = find(&keys, header.kid.as_deref(), header.alg);
        if key.is_none() {
            keys = self.keys(true).await?;
            key = find(&keys, header.kid.as_deref(), header.alg);
        }
        let key = key.ok_or(Refused::Invalid("its key is unknown"))?;
        let key = DecodingKey::from_jwk(key).map_err(|_| Refused::Invalid("its key cannot be used"))?;
        let mut validation = self.validation.clone();
        validation.algorithms = vec![header.alg];
        let decoded = jsonwebtoken::decode::<Claims>(token, &key, &validation);
        let claims = decoded.map_err(|error| Refused::Invalid(reason(error.kind())))?.claims;
        let client = claims.client_id.or(claims.azp).filter(|client| !client.trim().is_empty());
        let name = claims.sub.or_else(|| client.clone());
        // An empty name is that of nobody, or of everybody whose issuer sends none.
        let name = name.filter(|name| !name.trim().is_empty()).ok_or(Refused::Invalid("it has no subject"))?;
        let mut scopes: BTreeSet<String> = words(claims.scope.as_deref().unwrap_or_default()).collect();
        match claims.scp {
            Some(Scopes::Text(text)) => scopes.extend(words(&text)),
            Some(Scopes::List(list)) => scopes.extend(list),
            None => {}
        }
        Ok(Subject { name, client, scopes })
    }

    /// Returns the keys of the issuer, read again if they are old, or `afresh` if they are not quite new.
    async fn keys(&self, afresh: bool) -> Result<Arc<Vec<Jwk>>, Refused> {
        let max_age = if afresh { MIN_AGE } else { MAX_AGE };
        let current = || {
            let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner).clone();
            keys.read.filter(|read| read.elapsed() < max_age).map(|_| keys.set)
        };
        if let Some(keys) = current() {
            return Ok(keys);
        }
        let _alone = self.reading.lock().await;
        if let Some(keys) = current() {
            return Ok(keys);
        }
        let read = self.read_keys().await;
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(set) => *keys = Keys { set: Arc::new(set), read: Some(Instant::now()) },
            Err(reason) => {
                tracing::error!("http.jwt.jwks: {reason}");
                if keys.read.is_none() {
                    return Err(Refused::NoKeys);
                }
                // The issuer is not asked again at each request.
                keys.read = Some(Instant::now());
            }
        }
        Ok(Arc::clone(&keys.set))
    }

    async fn read_keys(&self) -> Result<Vec<Jwk>, String> {
        let source = &self.config.jwks;
        let text = if source.starts_with("http://") || source.starts_with("https://") {
            let failed = |error: reqwest::Error| error.without_url().to_string();
            let response = self.client.get(source).send().await.map_err(failed)?;
            let mut response = response.error_for_status().map_err(failed)?;
            let mut text = Vec::new();
            while let Some(piece) = response.chunk().await.map_err(failed)? {
                text.extend_from_slice(&piece);
                if text.len() > MAX_JWKS_BYTES {
                    return Err("the keys are too long".into());
                }
            }
            text
        } else {
            files::read(Path::new(source), MAX_JWKS_BYTES as u64).map_err(|error| error.to_string())?
        };
        // A key of an unknown kind does not make the others useless.
        let set: serde_json::Value = serde_json::from_slice(&text).map_err(|_| "it is not JSON".to_owned())?;
        let keys = set["keys"].as_array().ok_or("it has no list 'keys'")?;
        let keys = keys.iter().filter_map(|key| serde_json::from_value(key.clone()).ok()).collect();
        Ok(JwkSet { keys }.keys)
    }
}

/// Splits scopes at ASCII spaces (RFC 6749, section 3.3): other white space is part of a name, which no scope has.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned)
}

/// Finds the key of a token. A token without a key id has the only key of its kind.
fn find<'a>(keys: &'a [Jwk], id: Option<&str>, algorithm: Algorithm) -> Option<&'a Jwk> {
    let fits = |key: &&Jwk| {
        let is_for_signatures = key.common.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature);
        let is_of_algorithm = key.common.key_algorithm.is_none_or(|of| of.to_string() == format!("{algorithm:?}"));
        let family = DecodingKey::from_jwk(key).map(|key| key.family());
        is_for_signatures && is_of_algorithm && family.is_ok_and(|family| family == family_of(algorithm))
    };
    let mut fitting = keys.iter().filter(fits);
    match id {
        Some(id) => fitting.find(|key| key.common.key_id.as_deref() == Some(id)),
        None => fitting.next().filter(|_| fitting.next().is_none()),
    }
}

fn family_of(algorithm: Algorithm) -> AlgorithmFamily {
    match algorithm {
        Algorithm::ES256 => AlgorithmFamily::Ec,
        Algorithm::EdDSA => AlgorithmFamily::Ed,
        _ => AlgorithmFamily::Rsa,
    }
}

fn reason(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidSignature => "its signature is wrong",
        ErrorKind::ExpiredSignature => "it has expired",
        ErrorKind::ImmatureSignature => "it is not valid yet",
        ErrorKind::InvalidIssuer => "it is of another issuer",
        ErrorKind::InvalidAudience => "it is for another server",
        ErrorKind::MissingRequiredClaim(_) => "it lacks 'exp', 'iss' or 'aud'",
        _ => "it is malformed",
    }
}

/// Signatures by `ring`, which rustls has already.
static PROVIDER: CryptoProvider =
    CryptoProvider { signer_factory: no_signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

fn no_signer(_: &Algorithm, _: &EncodingKey) -> JwtResult<Box<dyn JwtSigner>> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> JwtResult<Box<dyn JwtVerifier>> {
    match algorithm {
        Algorithm::RS256 | Algorithm::ES256 | Algorithm::EdDSA if key.family() == family_of(*algorithm) => {
            Ok(Box::new(RingVerifier { algorithm: *algorithm, key: key.clone() }))
        }
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), jsonwebtoken::signature::Error> {
        let wrong = |_| jsonwebtoken::signature::Error::new();
        match (self.algorithm, self.key.kind()) {
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).map_err(wrong)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).map_err(wrong)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature).map_err(wrong)
            }
            _ => Err(jsonwebtoken::signature::Error::new()),
        }
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
