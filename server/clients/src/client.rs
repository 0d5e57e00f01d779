//! The clients: one table. Where their files are, how these are written, and how values refer to variables.

/// A client.
#[derive(Debug)]
pub struct Client {
    /// The name on the command line.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// How values refer to variables.
    pub(crate) variables: Variables,
    /// Its files.
    pub(crate) files: &'static [File],
}

/// A file of a client.
#[derive(Debug)]
pub struct File {
    /// Whose file it is.
    pub scope: Scope,
    /// Where it is, on Linux, macOS and Windows.
    pub places: [Place; 3],
    /// Where in the file the servers are.
    pub keys: &'static [&'static str],
}

/// A folder and a path in it, with `/` between the parts.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// In the user's home.
    Home(&'static str),
    /// In the folder of the configurations of applications: `~/.config`, `~/Library/Application Support`, `%APPDATA%`.
    Config(&'static str),
    /// In the folder that the client was opened in.
    Folder(&'static str),
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The user's.
    User,
    /// That of the folder, which may be shared with others.
    Folder,
}

/// An operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Linux and other systems with `~/.config`.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// Returns that of this program.
    #[must_use]
    pub fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }
}

/// How values of a client refer to variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variables {
    /// They do not: `${` is text.
    None,
    /// `${NAME}` and `${NAME:-default}`.
    Shell,
    /// `${env:NAME}`, `${input:id}`, `${workspaceFolder}` and others.
    Editor,
    /// `${env:NAME}` and others, which name places outside of the file.
    Env,
}

const fn everywhere(place: Place) -> [Place; 3] {
    [place, place, place]
}

const MCP_SERVERS: &[&str] = &["mcpServers"];

/// All clients, in the order in which they are shown.
pub const CLIENTS: &[Client] = &[
    Client {
        id: "claude-desktop",
        name: "Claude Desktop",
        variables: Variables::None,
        files: &[File {
            scope: Scope::User,
            places: everywhere(Place::Config("Claude/claude_desktop_config.json")),
            keys: MCP_SERVERS,
        }],
    },
    Client {
        id: "claude-code",
        name: "Claude Code",
        variables: Variables::Shell,
        files: &[
            File { scope: Scope::User, places: everywhere(Place::Home(".claude.json")), keys: MCP_SERVERS },
            // `FOLDER` stands for the path of the folder.
            File {
                scope: Scope::Folder,
                places: everywhere(Place::Home(".claude.json")),
                keys: &["projects", "FOLDER", "mcpServers"],
            },
            File { scope: Scope::Folder, places: everywhere(Place::Folder(".mcp.json")), keys: MCP_SERVERS },
        ],
    },
    Client {
        id: "cursor",
        name: "Cursor",
        variables: Variables::Editor,
        files: &[
            File { scope: Scope::User, places: everywhere(Place::Home(".cursor/mcp.json")), keys: MCP_SERVERS },
            File { scope: Scope::Folder, places: everywhere(Place::Folder(".cursor/mcp.json")), keys: MCP_SERVERS },
        ],
    },
    Client {
        id: "vscode",
        name: "VS Code",
        variables: Variables::Editor,
        files: &[
            File { scope: Scope::User, places: everywhere(Place::Config("Code/User/mcp.json")), keys: &["servers"] },
            File {
                scope: Scope::User,
                places: everywhere(Place::Config("Code/User/settings.json")),
                keys: &["mcp", "servers"],
            },
            File { scope: Scope::Folder, places: everywhere(Place::Folder(".vscode/mcp.json")), keys: &["servers"] },
        ],
    },
    Client {
        id: "windsurf",
        name: "Windsurf",
        variables: Variables::Env,
        files: &[File {
            scope: Scope::User,
            places: everywhere(Place::Home(".codeium/windsurf/mcp_config.json")),
            keys: MCP_SERVERS,
        }],
    },
    Client {
        id: "zed",
        name: "Zed",
        variables: Variables::None,
        files: &[
            File {
                scope: Scope::User,
                places: [
                    Place::Config("zed/settings.json"),
                    Place::Home(".config/zed/settings.json"),
                    Place::Config("Zed/settings.json"),
                ],
                keys: &["context_servers"],
            },
            File {
                scope: Scope::Folder,
                places: everywhere(Place::Folder(".zed/settings.json")),
                keys: &["context_servers"],
            },
        ],
    },
    Client {
        id: "codex",
        name: "Codex",
        variables: Variables::None,
        files: &[File {
            scope: Scope::User,
            places: everywhere(Place::Home(".codex/config.toml")),
            keys: &["mcp_servers"],
        }],
    },
    Client {
        id: "mcpproxy",
        name: "mcpproxy",
        variables: Variables::Env,
        files: &[File {
            scope: Scope::User,
            places: everywhere(Place::Home(".mcpproxy/mcp_config.json")),
            keys: MCP_SERVERS,
        }],
    },
];

impl Client {
    /// Returns the client of an id.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.id == id)
    }
}
