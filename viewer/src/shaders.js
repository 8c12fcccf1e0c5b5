// The programs of the graphics chip.

/** The colour of the haze before what is far away, as the sky of the page has it at the horizon. */
const HORIZON = "vec3(0.42, 0.49, 0.58)";
const HAZE = `
uniform vec3 eye;
uniform float size;
float haze(vec3 place) { return 0.75 * smoothstep(1.1 * size, 4.0 * size, distance(place, eye)); }`;

export const TERRAIN_VERTEX = `#version 300 es
layout(location = 0) in vec3 place;
layout(location = 1) in vec4 kind;
layout(location = 2) in vec4 colour;
uniform mat4 camera;
out vec4 shade;
out vec2 at;
out vec2 glow;
${HAZE}
const vec3 NORMALS[5] = vec3[5](vec3(1, 0, 0), vec3(-1, 0, 0), vec3(0, 1, 0), vec3(0, -1, 0), vec3(0, 0, 1));
void main() {
  vec3 normal = NORMALS[int(kind.x + 0.5)];
  float light = 0.66 + 0.46 * max(dot(normal, normalize(vec3(0.45, -0.3, 0.84))), 0.0);
  glow = vec2(kind.y / 255.0, haze(place));
  shade = vec4(colour.rgb * mix(light, 1.25, glow.x), colour.a);
  at = place.xy / size;
  gl_Position = camera * vec4(place, 1.0);
}`;

export const TERRAIN_FRAGMENT = `#version 300 es
precision mediump float;
in vec4 shade;
in highp vec2 at;
in vec2 glow;
uniform sampler2D sight;
uniform sampler2D marks;
out vec4 result;
void main() {
  float seen = max(texture(sight, at).r, glow.x);
  float grey = dot(shade.rgb, vec3(0.3, 0.5, 0.2));
  vec3 colour = mix(vec3(0.42 * grey) + vec3(0.05, 0.065, 0.09), shade.rgb, seen);
  vec4 mark = texture(marks, at);
  colour = colour * (1.0 - mark.a) + mark.rgb;
  result = vec4(mix(colour, ${HORIZON}, glow.y), shade.a);
}`;

export const BOX_VERTEX = `#version 300 es
layout(location = 0) in vec3 corner;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec3 centre;
layout(location = 3) in vec3 half_size;
layout(location = 4) in vec4 turn;
layout(location = 5) in vec4 colour;
uniform mat4 camera;
out vec4 shade;
${HAZE}
vec3 rotate(vec3 v) {
  float cp = cos(turn.y), sp = sin(turn.y);
  v = vec3(cp * v.x - sp * v.z, v.y, sp * v.x + cp * v.z);
  float cr = cos(turn.w), sr = sin(turn.w);
  v = vec3(v.x, cr * v.y - sr * v.z, sr * v.y + cr * v.z);
  float cy = cos(turn.x), sy = sin(turn.x);
  return vec3(cy * v.x - sy * v.y, sy * v.x + cy * v.y, v.z);
}
void main() {
  float light = 0.55 + 0.5 * max(dot(rotate(normal), normalize(vec3(0.45, -0.3, 0.84))), 0.0);
  shade = vec4(mix(colour.rgb * mix(light, 1.0, turn.z), ${HORIZON}, haze(centre) * (1.0 - turn.z)), colour.a);
  gl_Position = camera * vec4(centre + rotate(corner * half_size), 1.0);
}`;

export const DISC_VERTEX = `#version 300 es
layout(location = 0) in vec2 corner;
layout(location = 1) in vec4 place;
layout(location = 2) in vec4 colour;
uniform mat4 camera;
uniform vec3 right;
uniform vec3 above;
out vec4 shade;
out vec2 at;
void main() {
  shade = colour;
  at = corner;
  gl_Position = camera * vec4(place.xyz + (corner.x * right + corner.y * above) * place.w, 1.0);
}`;

export const DISC_FRAGMENT = `#version 300 es
precision mediump float;
in vec4 shade;
in vec2 at;
out vec4 result;
void main() {
  float strength = smoothstep(1.0, 0.25, length(at));
  result = vec4(shade.rgb, shade.a * strength);
}`;

export const BOX_FRAGMENT = `#version 300 es
precision mediump float;
in vec4 shade;
out vec4 result;
void main() { result = shade; }`;
