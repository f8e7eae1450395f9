// touched FILE PROGRAM [ARGUMENT...]: runs the program and writes to the file the symbols of its functions that ran, in
// the order in which they first did. Exits as the program does. x86-64 Linux, and programs with symbols.
//
// Every function starts with a breakpoint, which is taken away when it is met; so the program runs as fast as ever but
// for the first call of each function. Its children are not followed.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static const char BREAKPOINT = (char)0xcc;

struct function {
  uint64_t address;  // in the file's numbering
  const char *name;
  int has_run;
};

static char *image;  // the program's file
static struct function *functions;
static size_t function_count;

static void fail(const char *what) {
  fprintf(stderr, "touched: %s: %s\n", what, errno ? strerror(errno) : "not as expected");
  exit(125);
}

static int by_address(const void *a, const void *b) {
  const struct function *left = a, *right = b;
  return (left->address > right->address) - (left->address < right->address);
}

static void read_functions(const char *path) {
  int file = open(path, O_RDONLY);
  struct stat status;
  if (file < 0 || fstat(file, &status)) fail(path);
  image = mmap(0, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  if (image == MAP_FAILED || memcmp(image, ELFMAG, SELFMAG)) fail(path);
  Elf64_Ehdr *header = (void *)image;
  Elf64_Shdr *sections = (void *)(image + header->e_shoff), *table = 0;
  for (int i = 0; i < header->e_shnum; i++)
    if (sections[i].sh_type == SHT_SYMTAB) table = &sections[i];
  if (!table) fail("the program has no symbols");
  const char *names = image + sections[table->sh_link].sh_offset;
  Elf64_Sym *symbols = (void *)(image + table->sh_offset);
  size_t count = table->sh_size / sizeof *symbols;
  functions = calloc(count, sizeof *functions);
  if (!functions) fail("memory");
  for (size_t i = 0; i < count; i++)
    if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_size && symbols[i].st_shndx)
      functions[function_count++] = (struct function){symbols[i].st_value, names + symbols[i].st_name, 0};
  qsort(functions, function_count, sizeof *functions, by_address);
}

// The first function at an address, as several names may share one.
static struct function *function_at(uint64_t address) {
  struct function key = {address, 0, 0};
  struct function *found = bsearch(&key, functions, function_count, sizeof key, by_address);
  while (found && found > functions && found[-1].address == address) found--;
  return found;
}

static void write_all(int memory, const char *from, size_t length, uint64_t to) {
  while (length) {
    ssize_t written = pwrite(memory, from, length, to);
    if (written <= 0) fail("writing to the program");
    from += written, to += written, length -= written;
  }
}

// Where the file's addresses start in the process.
static uint64_t base_of(pid_t child) {
  if (((Elf64_Ehdr *)image)->e_type != ET_DYN) return 0;
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/maps", child);
  FILE *maps = fopen(path, "r");
  uint64_t base;
  if (!maps || fscanf(maps, "%lx", &base) != 1) fail(path);
  fclose(maps);
  return base;
}

static Elf64_Phdr *segment_of(uint64_t address) {
  Elf64_Ehdr *header = (void *)image;
  Elf64_Phdr *segments = (void *)(image + header->e_phoff);
  for (int i = 0; i < header->e_phnum; i++) {
    Elf64_Phdr *segment = &segments[i];
    int is_code = segment->p_type == PT_LOAD && segment->p_flags & PF_X;
    if (is_code && address - segment->p_vaddr < segment->p_filesz) return segment;
  }
  return 0;
}

static void place_breakpoints(int memory, uint64_t base) {
  for (size_t next = 0; next < function_count;) {
    Elf64_Phdr *segment = segment_of(functions[next].address);
    if (!segment) fail("a function is not among the code");
    char *text = malloc(segment->p_filesz);
    if (!text) fail("memory");
    memcpy(text, image + segment->p_offset, segment->p_filesz);
    for (; next < function_count && segment_of(functions[next].address) == segment; next++)
      text[functions[next].address - segment->p_vaddr] = BREAKPOINT;
    write_all(memory, text, segment->p_filesz, base + segment->p_vaddr);
    free(text);
  }
}

// Whether the thread has met a breakpoint of ours; it goes on from there.
static int met_breakpoint(pid_t thread, int memory, uint64_t base, FILE *out) {
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, thread, 0, &registers)) return 0;
  uint64_t address = --registers.rip - base;
  struct function *function = function_at(address);
  if (!function) return 0;
  // Two threads can meet the same one.
  if (!function->has_run) {
    Elf64_Phdr *segment = segment_of(address);
    write_all(memory, image + segment->p_offset + (address - segment->p_vaddr), 1, base + address);
    for (struct function *alias = function; alias < functions + function_count && alias->address == address; alias++) {
      alias->has_run = 1;
      fprintf(out, "%s\n", alias->name);
    }
  }
  return !ptrace(PTRACE_SETREGS, thread, 0, &registers);
}

int main(int count, char **arguments) {
  if (count < 3) return fprintf(stderr, "usage: touched FILE PROGRAM [ARGUMENT...]\n"), 125;
  FILE *out = fopen(arguments[1], "w");
  if (!out) fail(arguments[1]);
  // Whoever ends this half-way has what was met until then.
  setvbuf(out, 0, _IOLBF, 0);
  read_functions(arguments[2]);

  pid_t child = fork();
  if (!child) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    execv(arguments[2], arguments + 2);
    fail(arguments[2]);
  }
  int status;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) fail("the program cannot be traced");
  int options = PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, child, 0, options)) fail("the program cannot be traced");
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", child);
  int memory = open(path, O_RDWR);
  if (memory < 0) fail(path);
  uint64_t base = base_of(child);
  place_breakpoints(memory, base);
  ptrace(PTRACE_CONT, child, 0, 0);

  int code = 125;
  for (pid_t thread; (thread = waitpid(-1, &status, __WALL)) > 0;) {
    if (!WIFSTOPPED(status)) {
      if (thread == child) code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      continue;
    }
    int sent = WSTOPSIG(status);
    // A thread begins with a stop of its own, and its parent with an event.
    int is_beginning = status >> 16 || sent == SIGSTOP;
    if (is_beginning || (sent == SIGTRAP && met_breakpoint(thread, memory, base, out))) sent = 0;
    ptrace(PTRACE_CONT, thread, 0, sent);
  }
  return code;
}
