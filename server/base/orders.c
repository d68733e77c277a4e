#define _GNU_SOURCE
#include "server/base/orders.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int ParseOrders(struct Orders* orders) {
  char* const end = orders->text + orders->length;
  int count = 0;
  orders->environment = NULL;
  if (orders->length == 0 || orders->length > sizeof(orders->text) || end[-1] != '\0') return -1;
  for (char* word = orders->text; word < end; word += strlen(word) + 1) {
    if (count == kOrdersWords) return -1;
    if (*word != '\0') {
      orders->words[count++] = word;
      continue;
    }
    if (orders->environment != NULL || count == 0) return -1;
    orders->argc = count;
    orders->words[count++] = NULL;
    orders->environment = orders->words + count;
  }
  if (orders->environment == NULL) return -1;
  orders->words[count] = NULL;
  orders->argv = orders->words;
  for (char** entry = orders->environment; *entry != NULL; ++entry) {
    if (strchr(*entry, '=') == NULL || **entry == '=') return -1;
  }
  return 0;
}

/* Over the entry of the same name. What is left of its room becomes 0. */
static int Overwrite(const char* entry, size_t name) {
  for (char** old = environ; *old != NULL; ++old) {
    const size_t room = strlen(*old);
    if (strncmp(*old, entry, name) != 0) continue;
    if (strlen(entry) > room) return -1;
    memset(*old, 0, room);
    memcpy(*old, entry, strlen(entry));
    return 0;
  }
  return -1;
}

int TakeEnvironment(const struct Orders* orders, const char* shown) {
  int result = -1;
  for (char** entry = orders->environment; *entry != NULL; ++entry) {
    const size_t name = (size_t)(strchr(*entry, '=') - *entry);
    if (strlen(shown) == name && strncmp(*entry, shown, name) == 0) {
      result = Overwrite(*entry, name + 1);
      continue;
    }
    char* const copy = strndup(*entry, name);
    const int failed = copy == NULL || setenv(copy, *entry + name + 1, 1) != 0;
    free(copy);
    if (failed) return -1;
  }
  return result;
}

void ShowArguments(const struct Orders* orders, int argc, char** argv) {
  char* to = argv[0];
  char* const end = argv[argc - 1] + strlen(argv[argc - 1]);
  size_t needed = 0;
  for (int i = 0; i < orders->argc; ++i) needed += strlen(orders->argv[i]) + 1;
  if (needed > (size_t)(end - to)) return;
  for (int i = 0; i < orders->argc; ++i) {
    const size_t size = strlen(orders->argv[i]) + 1;
    memcpy(to, orders->argv[i], size);
    to += size;
  }
  memset(to, 0, (size_t)(end - to));
}
