/** Text as it stands in XML, which has no control characters at all. */
export function escaped(content: string): string {
  const names: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  const printable = [...content].filter((one) => one >= ' ' && one !== '\x7f').join('');
  return printable.replace(/[&<>"]/g, (one) => names[one] as string);
}
