// Hands a file to the visitor, and puts text on the clipboard.

/** A file's name without what a file system or a shell could take amiss. */
export function fileName(text: string): string {
  const plain = text.toLowerCase().replaceAll(/[^a-z0-9.]+/g, "-").replaceAll(/^[-.]+|[-.]+$/g, "");
  return plain.slice(0, 80) || "lab";
}

export function save(name: string, content: Blob | string, type = "text/plain"): void {
  const blob = typeof content === "string" ? new Blob([content], { type: `${type};charset=utf-8` }) : content;
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has taken the file by the time that the next task begins.
  setTimeout(() => {
    URL.revokeObjectURL(address);
  }, 0);
}

/** A drawing in SVG as pixels, `scale` of them for each of its own. */
export async function pngOf(svg: string, scale = 2): Promise<Blob> {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(image.naturalWidth * scale);
    canvas.height = Math.round(image.naturalHeight * scale);
    const context = canvas.getContext("2d");
    if (context === null) throw new Error("this browser does not draw");
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) => {
        if (blob === null) reject(new Error("this browser does not write PNG"));
        else resolve(blob);
      }, "image/png");
    });
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** Whether the text is on the clipboard now. Where the page may not write there, nothing happens. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    document.body.append(area);
    area.select();
    try {
      // The only way where the page comes from a plain http address of another machine.
      return document.execCommand("copy");
    } catch {
      return false;
    } finally {
      area.remove();
    }
  }
}
