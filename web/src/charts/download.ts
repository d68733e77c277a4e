// Hands a file to the browser's downloads.

export function download(name: string, content: string | Blob, type: string): void {
  const blob = typeof content === 'string' ? new Blob([content], { type }) : content;
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // Not at once: the browser reads it a little later.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** A name that every file system takes, still readable: no more than letters, digits and - _ . */
export function fileName(...parts: string[]): string {
  const name = parts.filter((part) => part !== '').join('-');
  return (
    name
      .replace(/[^\p{L}\p{N}._-]+/gu, '-')
      .replace(/^[-.]+|-+$/g, '')
      .slice(0, 100) || 'chart'
  );
}
