//! The entry of the master key in the keyring of the system. That is Secret Service on Linux and other Unixes (GNOME
//! Keyring, KWallet, KeePassXC), Keychain on macOS, Credential Manager on Windows.

use zeroize::Zeroizing;

/// Returns the keys of the entry; `None`: there is no entry.
///
/// # Errors
/// There is no keyring, or it is locked.
#[cfg(feature = "keyring")]
pub fn read() -> Result<Option<Zeroizing<String>>, String> {
    match entry()?.get_password() {
        Ok(text) => Ok(Some(Zeroizing::new(text))),
        Err(keyring_core::Error::NoEntry) => Ok(None),
        Err(error) => Err(told(&error)),
    }
}

/// Writes the entry.
///
/// # Errors
/// There is no keyring, or it is locked.
#[cfg(feature = "keyring")]
pub fn write(keys: &str) -> Result<(), String> {
    entry()?.set_password(keys).map_err(|error| told(&error))
}

/// How the entry is found, as `secret-tool lookup service codecall username 'master key'` names it.
#[cfg(feature = "keyring")]
fn entry() -> Result<keyring_core::Entry, String> {
    use std::sync::OnceLock;
    // Where there is no keyring now, there may be one later: a session that begins, a service that starts.
    static IS_OPEN: OnceLock<()> = OnceLock::new();
    if IS_OPEN.get().is_none() {
        #[cfg(target_os = "macos")]
        let store = apple_native_keyring_store::keychain::Store::new();
        #[cfg(windows)]
        let store = windows_native_keyring_store::Store::new();
        #[cfg(all(unix, not(target_os = "macos")))]
        let store = dbus_secret_service_keyring_store::Store::new();
        keyring_core::set_default_store(store.map_err(|error| told(&error))?);
        let _ = IS_OPEN.set(());
    }
    keyring_core::Entry::new("codecall", "master key").map_err(|error| told(&error))
}

/// Returns the problem, and the remedy.
#[cfg(feature = "keyring")]
fn told(error: &keyring_core::Error) -> String {
    let advice = "unlock it, start it in this session, or set CODECALL_MASTER_KEY or CODECALL_MASTER_KEY_FILE";
    // What these contain are the bytes of the keys.
    let problem = match error {
        keyring_core::Error::BadEncoding(_) | keyring_core::Error::BadDataFormat(..) => "its entry is no text".into(),
        error => error.to_string(),
    };
    format!("{problem}; {advice}")
}

#[cfg(not(feature = "keyring"))]
const MISSING: &str = "this program is built without it; build it with the feature 'keyring', install a package of CodeCall, or \
                       set CODECALL_MASTER_KEY or CODECALL_MASTER_KEY_FILE";

/// Fails: the program is built without the feature `keyring`.
///
/// # Errors
/// Always.
#[cfg(not(feature = "keyring"))]
pub fn read() -> Result<Option<Zeroizing<String>>, String> {
    Err(MISSING.into())
}

/// Fails: the program is built without the feature `keyring`.
///
/// # Errors
/// Always.
#[cfg(not(feature = "keyring"))]
pub fn write(_: &str) -> Result<(), String> {
    Err(MISSING.into())
}
