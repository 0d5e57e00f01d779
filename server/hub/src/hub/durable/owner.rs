//! Whose run it is, and who may read it.
//!
//! A run belongs to the key of its client, and is read with the scopes that it was begun with, or with more.

use super::Durable;
use super::header::Header;
use crate::hub::{Hub, Principal};
use codecall_base::event::RunId;
use codecall_store::{JournalProblem, JournaledRun};

impl Durable {
    /// Whether the store has a run of this id, whoever may read it. Of an engine it says nothing.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn is_stored(&self, hub: &Hub, id: &RunId) -> Result<bool, JournalProblem> {
        if self.engine.is_some() {
            return Ok(false);
        }
        let keys = self.keys(hub.config()).await?;
        Ok(self.journals.get(&keys, id.as_str()).await?.is_some())
    }

    /// Returns a run of the client of a hub, which it may read; `None`: there is none of this id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn own_run(&self, hub: &Hub, id: &RunId) -> Result<Option<JournaledRun>, JournalProblem> {
        let keys = self.keys(hub.config()).await?;
        let Some(mut run) = self.journals.get(&keys, id.as_str()).await? else { return Ok(None) };
        let (Some(principal), Some(owner)) = (&hub.principal, run.principal.as_deref()) else {
            // That of the server itself.
            return Ok(Some(run).filter(|run| run.principal.is_none() && hub.principal.is_none()));
        };
        if *owner != *principal.owner {
            if !principal.owns(owner) {
                return Ok(None);
            }
            // The first client with the former name gets all of its runs.
            self.journals.give(owner, &principal.owner).await?;
            let Some(given) = self.journals.get(&keys, id.as_str()).await? else { return Ok(None) };
            if given.principal.as_deref() != Some(&*principal.owner) {
                return Ok(None);
            }
            run = given;
        }
        if principal.scopes.is_none() {
            return Ok(Some(run));
        }
        let Some((_, header)) = self.journals.read(&keys, id.as_str()).await? else { return Ok(None) };
        let header = serde_json::from_str::<Header>(&header).ok();
        Ok(Some(run).filter(|_| header.is_some_and(|header| may_read(principal, &header))))
    }
}

/// Whether the token of a client has the scopes that a run was begun with.
fn may_read(principal: &Principal, header: &Header) -> bool {
    match (&principal.scopes, &header.scopes) {
        (None, _) => true,
        (Some(granted), Some(needed)) => needed.is_subset(granted),
        // An earlier version has noted no scopes, but which tools the client may use.
        (Some(_), None) => header.permissions == Some(principal.permissions()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecall_base::tool::ToolFilter;
    use serde_json::json;

    fn principal(scopes: Option<&[&str]>, filters: usize) -> Principal {
        Principal {
            name: "jwt:carol".into(),
            owner: "subject:1".into(),
            former_owner: Some("jwt:carol".into()),
            scopes: scopes.map(|scopes| scopes.iter().map(|&scope| scope.to_owned()).collect()),
            is_operator: false,
            allowed: Some(vec![ToolFilter::default(); filters]),
            front: None,
            limits: serde_json::Map::new(),
            runs: None,
            key: [0; 32],
        }
    }

    #[test]
    fn a_run_of_an_earlier_version_is_read_with_the_same_tools() {
        let header = |scopes: serde_json::Value| -> Header {
            let header = json!({
                "interpreter": "1", "script": "", "language": null, "context": null, "allowedTools": null,
                "allowedApps": null, "limits": {}, "loops": "all", "allowConsole": true, "timers": true,
                "disabledBuiltins": [], "disabledGlobals": [], "seed": 0, "beganMs": 0, "client": null,
                "permissions": principal(None, 2).permissions(), "maxResultBytes": 1, "scopes": scopes,
            });
            serde_json::from_value(header).expect("a header")
        };
        let (old, new) = (header(serde_json::Value::Null), header(json!(["read", "write"])));
        for (scopes, filters, reads_old, reads_new) in [
            (Some(&["read"][..]), 1, false, false),
            (Some(&["read", "write"][..]), 2, true, true),
            (Some(&["other", "read", "write"][..]), 3, false, true),
            (None, 1, true, true),
        ] {
            let principal = principal(scopes, filters);
            assert_eq!((may_read(&principal, &old), may_read(&principal, &new)), (reads_old, reads_new), "{scopes:?}");
        }
        assert!(principal(None, 1).owns("jwt:carol") && !principal(None, 1).owns("jwt:dave"));
    }
}
