const codecallContext = JSON.parse(__context);
const __calls = [];
let __state = '';
let __text = '';
function callTool(tool, input) {
  return new Promise((resolve) => __calls.push({ tool, input: JSON.stringify(input), resolve }));
}
function __tool() {
  return __calls.length > 0 ? __calls[0].tool : '';
}
function __settle(json) {
  __calls.shift().resolve(JSON.parse(json));
}
function __main(main) {
  const settle = (state, text) => {
    __state = state;
    __text = text;
  };
  main().then(
    (value) => settle('done', JSON.stringify(value)),
    (error) => settle('failed', String(error)),
  );
}
function __take() {
  return [__state, __text];
}
