// What every SVG picture here is made of: text, style, the frame around it.
#ifndef NORMLAB_SERVER_EXPORT_SVG_PARTS_H_
#define NORMLAB_SERVER_EXPORT_SVG_PARTS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace normlab::exporter {

// `text` for an XML document: markup escaped, what XML does not allow replaced by U+FFFD.
std::string XmlText(std::string_view text);

// A text element; `style_class` is one of the classes of the pictures' style sheet.
std::string SvgText(double x, double y, std::string_view style_class, std::string_view text);

// The first `most` characters (code points), with an ellipsis when there are more.
std::string Shortened(const std::string& text, size_t most);

// A whole document of that size with `body` on white. `label` says what the picture shows.
std::string SvgDocument(double width, double height, std::string_view label, std::string_view body);

}  // namespace normlab::exporter

#endif  // NORMLAB_SERVER_EXPORT_SVG_PARTS_H_
