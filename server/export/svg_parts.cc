#include "server/export/svg_parts.h"

#include <fmt/format.h>

namespace normlab::exporter {
namespace {

constexpr std::string_view kStyle =
    "<style>text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;"
    "font-size:13px;fill:#1b1f24;font-variant-numeric:tabular-nums}"
    ".heading{font-size:16px;font-weight:600}.title{font-weight:600}"
    ".xlabel{fill:#57606a;font-size:12px;text-anchor:middle}"
    ".ylabel{fill:#57606a;font-size:12px;text-anchor:end}"
    ".note{fill:#57606a;font-size:11px;text-anchor:end}"
    ".head{fill:#57606a;font-size:12px;text-anchor:end}.value{text-anchor:end}"
    ".bad{fill:#b42318;font-size:12px}.foot{fill:#57606a;font-size:11px}"
    ".major{stroke:#dfe3e8;fill:none}.minor{stroke:#f0f2f5;fill:none}"
    ".frame{stroke:#8b949e;fill:none}"
    ".line{fill:none;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}"
    ".key{fill:none;stroke-width:3}"
    ".band{stroke:none;fill-opacity:.14}.expected{fill:#fff;stroke-width:1.5}</style>\n";

// U+FFFD for bytes that are not UTF-8; returns the length of the sequence at i, or 0.
size_t SequenceLength(std::string_view text, size_t i) {
  const auto byte = static_cast<unsigned char>(text[i]);
  const size_t length = byte < 0x80   ? 1
                        : byte < 0xc2 ? 0
                        : byte < 0xe0 ? 2
                        : byte < 0xf0 ? 3
                        : byte < 0xf5 ? 4
                                      : 0;
  if (length == 0 || i + length > text.size()) return 0;
  for (size_t j = i + 1; j < i + length; ++j) {
    if ((static_cast<unsigned char>(text[j]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string XmlText(std::string_view text) {
  std::string escaped;
  for (size_t i = 0; i < text.size();) {
    const size_t length = SequenceLength(text, i);
    const char c = text[i];
    if (length == 0 || (length == 1 && static_cast<unsigned char>(c) < 0x20 && c != '\t')) {
      escaped += "\xEF\xBF\xBD";
      ++i;
      continue;
    }
    const std::string_view sequence = text.substr(i, length);
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += sequence;
    }
    i += length;
  }
  return escaped;
}

std::string SvgText(double x, double y, std::string_view style_class, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, style_class,
                     XmlText(text));
}

// The first `most` characters (code points), with an ellipsis when there are more.
std::string Shortened(const std::string& text, size_t most) {
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) continue;
    if (++characters > most) return text.substr(0, i) + "…";
  }
  return text;
}

std::string SvgDocument(double width, double height, std::string_view label,
                        std::string_view body) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n",
      width, height);
  svg += fmt::format("<title>{}</title>\n", XmlText(label));
  svg += kStyle;
  svg += "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  svg += body;
  return svg + "</svg>\n";
}

}  // namespace normlab::exporter
