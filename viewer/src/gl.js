// The three kinds of things that are drawn: terrain, boxes, and soft discs.

import { PageError } from "./data.js";
import { VERTEX_BYTES } from "./terrain.js";

export const MAX_CIRCLES = 12;

const TERRAIN_VERTEX = `#version 300 es
layout(location = 0) in vec3 place;
layout(location = 1) in vec4 kind;
layout(location = 2) in vec4 colour;
uniform mat4 camera;
out vec4 shade;
out vec3 at;
out float glow;
const vec3 NORMALS[5] = vec3[5](vec3(1, 0, 0), vec3(-1, 0, 0), vec3(0, 1, 0), vec3(0, -1, 0), vec3(0, 0, 1));
void main() {
  vec3 normal = NORMALS[int(kind.x + 0.5)];
  float light = 0.62 + 0.42 * max(dot(normal, normalize(vec3(0.45, -0.3, 0.84))), 0.0);
  glow = kind.y / 255.0;
  shade = vec4(colour.rgb * mix(light, 1.25, glow), colour.a);
  at = place;
  gl_Position = camera * vec4(place, 1.0);
}`;

const TERRAIN_FRAGMENT = `#version 300 es
precision mediump float;
in vec4 shade;
in highp vec3 at;
in float glow;
uniform sampler2D sight;
uniform highp float size;
uniform highp vec4 circles[${MAX_CIRCLES}];
uniform vec4 tints[${MAX_CIRCLES}];
uniform int count;
out vec4 result;
void main() {
  vec3 colour = shade.rgb;
  for (int i = 0; i < ${MAX_CIRCLES}; i += 1) {
    if (i >= count) break;
    highp float off = distance(at.xy, circles[i].xy) - circles[i].z;
    float edge = smoothstep(circles[i].w, 0.0, abs(off));
    float inside = off < 0.0 ? tints[i].a * 0.35 : 0.0;
    colour = mix(colour, tints[i].rgb, max(inside, edge * min(1.0, tints[i].a * 3.0)));
  }
  float seen = texture(sight, at.xy / size).r;
  colour *= mix(0.34, 1.0, max(seen, glow * 0.7));
  result = vec4(colour, shade.a);
}`;

const BOX_VERTEX = `#version 300 es
layout(location = 0) in vec3 corner;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec3 centre;
layout(location = 3) in vec3 half_size;
layout(location = 4) in vec4 turn;
layout(location = 5) in vec4 colour;
uniform mat4 camera;
out vec4 shade;
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
  shade = vec4(colour.rgb * mix(light, 1.0, turn.z), colour.a);
  gl_Position = camera * vec4(centre + rotate(corner * half_size), 1.0);
}`;

const DISC_VERTEX = `#version 300 es
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

const DISC_FRAGMENT = `#version 300 es
precision mediump float;
in vec4 shade;
in vec2 at;
out vec4 result;
void main() {
  float strength = smoothstep(1.0, 0.25, length(at));
  result = vec4(shade.rgb, shade.a * strength);
}`;

const BOX_FRAGMENT = `#version 300 es
precision mediump float;
in vec4 shade;
out vec4 result;
void main() { result = shade; }`;

/** Floats of a box: centre, half size, yaw, pitch, glow, roll, colour. */
export const BOX_FLOATS = 14;
/** Floats of a disc: centre, radius, colour. */
export const DISC_FLOATS = 8;

export class Painter {
  /** @param {HTMLCanvasElement} canvas @param {number} size of the map */
  constructor(canvas, size) {
    const gl = canvas.getContext("webgl2", { antialias: !drawnBySoftware(), powerPreference: "high-performance" });
    if (!gl) throw new PageError("This browser has no WebGL 2, which the picture needs.");
    this.gl = gl;
    this.canvas = canvas;
    this.size = size;
    /** Pixels of the picture for one of the page; less where frames take long. */
    this.scale = Math.min(globalThis.devicePixelRatio || 1, 2);
    this.terrain = program(gl, TERRAIN_VERTEX, TERRAIN_FRAGMENT);
    this.boxes = program(gl, BOX_VERTEX, BOX_FRAGMENT);
    this.discs = program(gl, DISC_VERTEX, DISC_FRAGMENT);
    /** @type {Map<string, {vao: WebGLVertexArrayObject, buffer: WebGLBuffer, faces: number}>} */
    this.chunks = new Map();
    this.indices = buffer(gl);
    this.indexed = 0;
    this.box = instanced(gl, boxCorners(), 6, [3, 3, 4, 4], BOX_FLOATS);
    this.disc = instanced(gl, new Float32Array([-1, -1, 1, -1, 1, 1, -1, -1, 1, 1, -1, 1]), 2, [4, 4], DISC_FLOATS);
    this.sight = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.sight);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    for (const [name, value] of [
      [gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_MAG_FILTER, gl.LINEAR],
      [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
    ]) gl.texParameteri(gl.TEXTURE_2D, name, value);
    this.setSight(null);
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.CULL_FACE);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** What is in sight, (y, x) from 0 to 255; null: everything. @param {Uint8Array | null} cells */
  setSight(cells) {
    const { gl } = this;
    const side = cells ? this.size : 1;
    gl.bindTexture(gl.TEXTURE_2D, this.sight);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R8, side, side, 0, gl.RED, gl.UNSIGNED_BYTE, cells ?? new Uint8Array([255]));
  }

  /** @param {string} name @param {ArrayBuffer} vertices four for each face */
  setChunk(name, vertices) {
    const { gl } = this;
    let chunk = this.chunks.get(name);
    const faces = vertices.byteLength / VERTEX_BYTES / 4;
    if (!chunk) {
      const vao = gl.createVertexArray();
      chunk = { vao, buffer: buffer(gl), faces };
      this.chunks.set(name, chunk);
      gl.bindVertexArray(vao);
      gl.bindBuffer(gl.ARRAY_BUFFER, chunk.buffer);
      gl.vertexAttribPointer(0, 3, gl.FLOAT, false, VERTEX_BYTES, 0);
      gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, false, VERTEX_BYTES, 12);
      gl.vertexAttribPointer(2, 4, gl.UNSIGNED_BYTE, true, VERTEX_BYTES, 16);
      for (const place of [0, 1, 2]) gl.enableVertexAttribArray(place);
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.indices);
    }
    chunk.faces = faces;
    gl.bindVertexArray(null);
    gl.bindBuffer(gl.ARRAY_BUFFER, chunk.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, vertices, gl.DYNAMIC_DRAW);
    if (faces > this.indexed) {
      this.indexed = 2 * faces;
      const numbers = new Uint32Array(6 * this.indexed);
      for (let face = 0; face < this.indexed; face += 1) {
        numbers.set([0, 1, 2, 0, 2, 3].map((corner) => 4 * face + corner), 6 * face);
      }
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.indices);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, numbers, gl.STATIC_DRAW);
    }
  }

  /**
   * @param {import("./camera.js").Camera} camera
   * @param {import("./scene.js").Scene} scene
   */
  draw(camera, scene) {
    const { gl, canvas } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((each) => Math.round(each * this.scale));
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const matrix = camera.update(width / Math.max(1, height));
    gl.viewport(0, 0, width, height);
    gl.clearColor(0.075, 0.09, 0.12, 1);
    gl.depthMask(true);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.disable(gl.BLEND);
    gl.useProgram(this.terrain.program);
    gl.uniformMatrix4fv(this.terrain.at("camera"), false, matrix);
    gl.uniform1f(this.terrain.at("size"), this.size);
    const count = Math.min(scene.circles.length / 8, MAX_CIRCLES);
    const [circles, tints] = [new Float32Array(4 * MAX_CIRCLES), new Float32Array(4 * MAX_CIRCLES)];
    for (let i = 0; i < count; i += 1) {
      circles.set(scene.circles.slice(8 * i, 8 * i + 4), 4 * i);
      tints.set(scene.circles.slice(8 * i + 4, 8 * i + 8), 4 * i);
    }
    gl.uniform4fv(this.terrain.at("circles"), circles);
    gl.uniform4fv(this.terrain.at("tints"), tints);
    gl.uniform1i(this.terrain.at("count"), count);
    gl.bindTexture(gl.TEXTURE_2D, this.sight);
    this.drawChunks("opaque");
    gl.useProgram(this.boxes.program);
    gl.uniformMatrix4fv(this.boxes.at("camera"), false, matrix);
    this.box.draw(scene.boxes, 36);
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    gl.useProgram(this.terrain.program);
    this.drawChunks("clear");
    gl.useProgram(this.boxes.program);
    this.box.draw(scene.beams, 36);
    gl.useProgram(this.discs.program);
    gl.uniformMatrix4fv(this.discs.at("camera"), false, matrix);
    const [sin, cos] = [Math.sin(camera.azimuth), Math.cos(camera.azimuth)];
    const [rise, flat] = [Math.cos(camera.elevation), Math.sin(camera.elevation)];
    gl.uniform3f(this.discs.at("right"), -sin, cos, 0);
    gl.uniform3f(this.discs.at("above"), -cos * flat, -sin * flat, rise);
    this.disc.draw(scene.discs, 6);
    gl.bindVertexArray(null);
  }

  /** @param {string} kind */
  drawChunks(kind) {
    const { gl } = this;
    for (const [name, { vao, faces }] of this.chunks) {
      if (!name.startsWith(kind) || faces === 0) continue;
      gl.bindVertexArray(vao);
      gl.drawElements(gl.TRIANGLES, 6 * faces, gl.UNSIGNED_INT, 0);
    }
  }
}

/** Whether the processor draws, because there is no graphics chip. */
function drawnBySoftware() {
  const gl = document.createElement("canvas").getContext("webgl2");
  const names = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = names ? String(gl?.getParameter(names.UNMASKED_RENDERER_WEBGL)) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software/i.test(name);
}

/** @param {WebGL2RenderingContext} gl */
function buffer(gl) {
  return /** @type {WebGLBuffer} */ (gl.createBuffer());
}

/** @param {WebGL2RenderingContext} gl @param {string} vertex @param {string} fragment */
function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [type, text] of /** @type {[number, string][]} */ ([[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]])) {
    const shader = /** @type {WebGLShader} */ (gl.createShader(type));
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) {
    throw new PageError(`The picture cannot be drawn here: ${gl.getProgramInfoLog(made)}`);
  }
  /** @type {Map<string, WebGLUniformLocation | null>} */
  const places = new Map();
  return {
    program: made,
    /** @param {string} name */
    at(name) {
      if (!places.has(name)) places.set(name, gl.getUniformLocation(made, name));
      return places.get(name) ?? null;
    },
  };
}

/**
 * A shape that is drawn many times.
 * @param {WebGL2RenderingContext} gl
 * @param {Float32Array} corners
 * @param {number} cornerFloats
 * @param {number[]} widths of the attributes of an instance
 * @param {number} floats of an instance
 */
function instanced(gl, corners, cornerFloats, widths, floats) {
  const vao = gl.createVertexArray();
  gl.bindVertexArray(vao);
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer(gl));
  gl.bufferData(gl.ARRAY_BUFFER, corners, gl.STATIC_DRAW);
  let place = 0;
  const parts = cornerFloats === 6 ? [3, 3] : [cornerFloats];
  let offset = 0;
  for (const width of parts) {
    gl.vertexAttribPointer(place, width, gl.FLOAT, false, 4 * cornerFloats, offset);
    gl.enableVertexAttribArray(place);
    offset += 4 * width;
    place += 1;
  }
  const instances = buffer(gl);
  gl.bindBuffer(gl.ARRAY_BUFFER, instances);
  offset = 0;
  for (const width of widths) {
    gl.vertexAttribPointer(place, width, gl.FLOAT, false, 4 * floats, offset);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribDivisor(place, 1);
    offset += 4 * width;
    place += 1;
  }
  gl.bindVertexArray(null);
  return {
    /** @param {number[]} numbers @param {number} vertices */
    draw(numbers, vertices) {
      if (numbers.length === 0) return;
      gl.bindVertexArray(vao);
      gl.bindBuffer(gl.ARRAY_BUFFER, instances);
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(numbers), gl.STREAM_DRAW);
      gl.drawArraysInstanced(gl.TRIANGLES, 0, vertices, numbers.length / floats);
    },
  };
}

/** Corners and normals of a cube from -1 to 1. */
function boxCorners() {
  const out = [];
  for (let axis = 0; axis < 3; axis += 1) {
    for (const sign of [-1, 1]) {
      const [p, q] = [(axis + 1) % 3, (axis + 2) % 3];
      const square = sign > 0 ? [[-1, -1], [1, -1], [1, 1], [-1, -1], [1, 1], [-1, 1]] : [[-1, -1], [1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]];
      for (const [u, v] of square) {
        const corner = [0, 0, 0];
        const normal = [0, 0, 0];
        corner[axis] = normal[axis] = sign;
        corner[p] = u;
        corner[q] = v;
        out.push(...corner, ...normal);
      }
    }
  }
  return new Float32Array(out);
}
