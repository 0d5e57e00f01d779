//! QuickJS-ng. A fresh sandbox is a runtime with a context, because limits and isolation belong to the runtime.

use super::{Peer, Round, timed, wrapped};
use crate::cases::Case;
use rquickjs::{CatchResultExt as _, Context, Ctx, FromJs, Function, Runtime};

/// The engine QuickJS-ng.
pub struct QuickJs;

impl Peer for QuickJs {
    fn round(&mut self, case: &Case, times: u32) -> Result<Round, String> {
        timed(times, || fresh(case))
    }
}

fn fresh(case: &Case) -> Result<String, String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let context = Context::full(&runtime).map_err(|error| error.to_string())?;
    context.with(|ctx| {
        let json = case.context.as_deref().unwrap_or("{}");
        ctx.globals().set("__context", json).map_err(|error| error.to_string())?;
        eval::<()>(&ctx, &(wrapped(case) + "undefined"))
    })?;
    loop {
        while runtime.execute_pending_job().map_err(|error| error.to_string())? {}
        let ended = context.with(|ctx| {
            let [state, text]: [String; 2] =
                eval::<Vec<String>>(&ctx, "__take()")?.try_into().map_err(|_| "the bridge is broken")?;
            match state.as_str() {
                "done" => return Ok(Some(text)),
                "failed" => return Err(text),
                _ => {}
            }
            let globals = ctx.globals();
            let broken = |error: rquickjs::Error| error.to_string();
            let tool: Function = globals.get("__tool").map_err(broken)?;
            let settle: Function = globals.get("__settle").map_err(broken)?;
            loop {
                let name: String = tool.call(()).map_err(broken)?;
                if name.is_empty() {
                    return Ok(None);
                }
                settle.call::<_, ()>((case.answer(&name),)).map_err(broken)?;
            }
        })?;
        if let Some(answer) = ended {
            return Ok(answer);
        }
    }
}

fn eval<'js, V: FromJs<'js>>(ctx: &Ctx<'js>, source: &str) -> Result<V, String> {
    ctx.eval(source).catch(ctx).map_err(|error| error.to_string())
}
