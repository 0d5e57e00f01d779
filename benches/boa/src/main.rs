//! Runs scripts in Boa and measures the time. A fresh sandbox is a context. `../src/peers/process.rs` describes the protocol.

#![forbid(unsafe_code)]

use boa_engine::{Context, JsResult, JsString, JsValue, Source, js_string, property::Attribute};
use cpu_time::ThreadTime;
use serde_json::{Value, json};
use std::io::{BufRead as _, Write as _};

fn main() -> std::io::Result<()> {
    let mut bridge = String::new();
    for line in std::io::stdin().lock().lines() {
        let question: Value = serde_json::from_str(&line?)?;
        let answer = match question["bridge"].as_str() {
            Some(text) => {
                bridge = text.to_owned();
                json!({})
            }
            None => round(&bridge, &question).unwrap_or_else(|error| json!({ "error": error })),
        };
        writeln!(std::io::stdout(), "{answer}")?;
    }
    Ok(())
}

/// Makes sequential fresh runs.
fn round(bridge: &str, question: &Value) -> Result<Value, String> {
    let source = format!("{bridge}__main(async () => {{\n{}\n}});", question["script"].as_str().unwrap_or_default());
    let mut answer = String::new();
    let start = ThreadTime::now();
    for _ in 0..question["times"].as_u64().unwrap_or(1) {
        answer = fresh(&source, question).map_err(|error| error.to_string())??;
    }
    Ok(json!({ "ms": start.elapsed().as_secs_f64() * 1e3, "answer": answer }))
}

fn fresh(source: &str, question: &Value) -> JsResult<Result<String, String>> {
    let mut context = Context::default();
    // The limit also counts values that a caught exception has left on the stack.
    context.runtime_limits_mut().set_stack_size_limit(1 << 24);
    let json = js_string!(question["context"].as_str().unwrap_or("{}"));
    context.register_global_property(js_string!("__context"), json, Attribute::all())?;
    context.eval(Source::from_bytes(source))?;
    loop {
        context.run_jobs()?;
        let ended = call(&mut context, "__take", &[])?;
        match text(&mut context, &ended, 0)?.as_str() {
            "done" => return Ok(Ok(text(&mut context, &ended, 1)?)),
            "failed" => return Ok(Err(text(&mut context, &ended, 1)?)),
            _ => {}
        }
        loop {
            let tool = call(&mut context, "__tool", &[])?.to_string(&mut context)?.to_std_string_escaped();
            if tool.is_empty() {
                break;
            }
            let json = question["tools"][&tool].as_str().unwrap_or("null");
            call(&mut context, "__settle", &[js_string!(json).into()])?;
        }
    }
}

/// Calls a function of the bridge.
fn call(context: &mut Context, name: &str, arguments: &[JsValue]) -> JsResult<JsValue> {
    let function = context.global_object().get(JsString::from(name), context)?;
    let function = function.as_callable().expect("the bridge defines it");
    function.call(&JsValue::undefined(), arguments, context)
}

/// Returns an element of the list that `__take` returns.
fn text(context: &mut Context, list: &JsValue, index: u32) -> JsResult<String> {
    let list = list.to_object(context)?;
    Ok(list.get(index, context)?.to_string(context)?.to_std_string_escaped())
}
