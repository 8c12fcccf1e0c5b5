// The three kinds of things that are drawn: terrain, boxes, and soft discs.

import { PageError } from "./data.js";
import {
  BOX_FRAGMENT, BOX_VERTEX, DISC_FRAGMENT, DISC_VERTEX, TERRAIN_FRAGMENT, TERRAIN_VERTEX,
} from "./shaders.js";
import { VERTEX_BYTES } from "./terrain.js";

/** Floats of a box: centre, half size, yaw, pitch, glow and roll, colour. */
const BOX = [3, 3, 4, 4];
/** Floats of a disc: centre and radius, colour. */
const DISC = [4, 4];

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
    this.box = instanced(gl, boxCorners(), [3, 3], BOX);
    this.disc = instanced(gl, new Float32Array([-1, -1, 1, -1, 1, 1, -1, -1, 1, 1, -1, 1]), [2], DISC);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.pixelStorei(gl.UNPACK_PREMULTIPLY_ALPHA_WEBGL, true);
    this.sight = texture(gl);
    this.marks = texture(gl);
    this.setSight(null);
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.CULL_FACE);
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** What is in sight, (y, x) from 0 to 255; null: everything. @param {Uint8Array | null} cells */
  setSight(cells) {
    const { gl } = this;
    const side = cells ? this.size : 1;
    gl.bindTexture(gl.TEXTURE_2D, this.sight);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R8, side, side, 0, gl.RED, gl.UNSIGNED_BYTE, cells ?? new Uint8Array([255]));
  }

  /** What is drawn on the ground. @param {HTMLCanvasElement} canvas of the whole map */
  setMarks(canvas) {
    const { gl } = this;
    gl.bindTexture(gl.TEXTURE_2D, this.marks);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, canvas);
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
    gl.depthMask(true);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT); // without a colour: the page is the sky
    gl.disable(gl.BLEND);
    this.use(this.terrain, camera, matrix);
    gl.uniform1i(this.terrain.at("marks"), 1);
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.marks);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.sight);
    this.drawChunks("opaque");
    this.use(this.boxes, camera, matrix);
    this.box.draw(scene.boxes);
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    gl.useProgram(this.terrain.program);
    this.drawChunks("clear");
    gl.useProgram(this.boxes.program);
    this.box.draw(scene.beams);
    this.use(this.discs, camera, matrix);
    const [sin, cos] = [Math.sin(camera.azimuth), Math.cos(camera.azimuth)];
    const [rise, flat] = [Math.cos(camera.elevation), Math.sin(camera.elevation)];
    gl.uniform3f(this.discs.at("right"), -sin, cos, 0);
    gl.uniform3f(this.discs.at("above"), -cos * flat, -sin * flat, rise);
    this.disc.draw(scene.discs);
    gl.bindVertexArray(null);
  }

  /**
   * A small picture of boxes.
   * @param {number[]} boxes @param {import("./camera.js").Camera} camera @param {number} side pixels
   */
  portrait(boxes, camera, side) {
    const { gl, canvas } = this;
    gl.viewport(0, 0, side, side);
    gl.depthMask(true);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.disable(gl.BLEND);
    this.use(this.boxes, camera, camera.update(1));
    this.box.draw(boxes);
    gl.bindVertexArray(null);
    const made = document.createElement("canvas");
    made.width = made.height = side;
    made.getContext("2d")?.drawImage(canvas, 0, canvas.height - side, side, side, 0, 0, side, side);
    return made;
  }

  /** @param {ReturnType<typeof program>} made @param {import("./camera.js").Camera} camera @param {Float32Array} matrix */
  use(made, camera, matrix) {
    const { gl } = this;
    gl.useProgram(made.program);
    gl.uniformMatrix4fv(made.at("camera"), false, matrix);
    gl.uniform3f(made.at("eye"), ...camera.eye);
    gl.uniform1f(made.at("size"), this.size);
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

/** Whether the processor draws, because there is no graphics chip: `failIfMajorPerformanceCaveat` does not tell everywhere. */
function drawnBySoftware() {
  const gl = document.createElement("canvas").getContext("webgl2");
  const names = gl?.getExtension("WEBGL_debug_renderer_info");
  return Boolean(names) && /swift|llvm|software/i.test(gl?.getParameter(37446)); // UNMASKED_RENDERER_WEBGL
}

/** @param {WebGL2RenderingContext} gl */
function buffer(gl) {
  return /** @type {WebGLBuffer} */ (gl.createBuffer());
}

/** A texture that is smooth and ends at its edges. @param {WebGL2RenderingContext} gl */
function texture(gl) {
  const made = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, made);
  for (const [name, value] of [
    [gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_MAG_FILTER, gl.LINEAR],
    [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
  ]) gl.texParameteri(gl.TEXTURE_2D, name, value);
  return made;
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

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((all, each) => all + each, 0);

/**
 * A shape that is drawn many times.
 * @param {WebGL2RenderingContext} gl
 * @param {Float32Array} corners
 * @param {number[]} cornerWidths floats of the attributes of a corner
 * @param {number[]} widths and of those of an instance
 */
function instanced(gl, corners, cornerWidths, widths) {
  const vao = gl.createVertexArray();
  const [shape, instances] = [buffer(gl), buffer(gl)];
  gl.bindVertexArray(vao);
  let place = 0;
  for (const [made, each, divisor] of /** @type {[WebGLBuffer, number[], number][]} */ ([[shape, cornerWidths, 0], [instances, widths, 1]])) {
    gl.bindBuffer(gl.ARRAY_BUFFER, made);
    each.forEach((width, item) => {
      gl.vertexAttribPointer(place, width, gl.FLOAT, false, 4 * sum(each), 4 * sum(each.slice(0, item)));
      gl.enableVertexAttribArray(place);
      gl.vertexAttribDivisor(place, divisor);
      place += 1;
    });
  }
  gl.bindBuffer(gl.ARRAY_BUFFER, shape);
  gl.bufferData(gl.ARRAY_BUFFER, corners, gl.STATIC_DRAW);
  gl.bindVertexArray(null);
  return {
    /** @param {number[]} numbers of the instances */
    draw(numbers) {
      if (numbers.length === 0) return;
      gl.bindVertexArray(vao);
      gl.bindBuffer(gl.ARRAY_BUFFER, instances);
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(numbers), gl.STREAM_DRAW);
      gl.drawArraysInstanced(gl.TRIANGLES, 0, corners.length / sum(cornerWidths), numbers.length / sum(widths));
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
