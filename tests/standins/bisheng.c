/* A stand-in for bisheng: checks its command line and the source's outline, and makes a shared object that
 * embeds a device image of 64 bytes and whose `launch` runs a reference on the stand-in runtime. See
 * README.md.
 *
 * Built with -DSTANDIN_SOURCES="folder of this file" and -DSTANDIN_CC="C and C++ compiler driver". */
#define _GNU_SOURCE
#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 256, VECTOR_950 = 0x990000, CUBE_950 = 0x9a0000, VECTOR_910 = 0x930000 };

static const char *includes[MOST];
static const char *defines[MOST];
static int include_count;
static int define_count;
static const char *source;
static const char *output;
static const char *listing;
static int list_headers;
static char root[PATH_MAX]; /* of the toolkit that this program stands in */
static char work[] = "/tmp/bisheng-standin-XXXXXX";
static char generated[PATH_MAX];

static void leave(int status) {
    if (generated[0] != 0) {
        unlink(generated);
        rmdir(work);
    }
    exit(status);
}

static void error(const char *format, ...) {
    va_list arguments;
    fputs("bisheng: error: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    leave(1);
}

static char *read_all(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text;
    long size;
    if (file == NULL) {
        return NULL;
    }
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    text = calloc(1, (size_t)size + 1);
    if (fread(text, 1, (size_t)size, file) != (size_t)size) {
        error("cannot read %s", path);
    }
    fclose(file);
    return text;
}

/* Comments become blanks, lines stay where they are; what is looked for afterwards is code. */
static void blank_comments(char *text) {
    for (char *at = text; *at != 0; ++at) {
        if (*at == '"') {
            for (++at; *at != 0 && *at != '"' && *at != '\n'; ++at) {
                at += *at == '\\' && at[1] != 0;
            }
            if (*at == 0) {
                return;
            }
        } else if (at[0] == '/' && at[1] == '/') {
            while (*at != 0 && *at != '\n') {
                *at++ = ' ';
            }
            if (*at == 0) {
                return;
            }
        } else if (at[0] == '/' && at[1] == '*') {
            char *end = strstr(at + 2, "*/");
            end = end != NULL ? end + 2 : at + strlen(at);
            for (; at < end; ++at) {
                *at = *at == '\n' ? '\n' : ' ';
            }
            --at;
        }
    }
}

/* `start` up to the closing brace of the first block after it and a semicolon; empty if there is no such
 * text. */
static char *block_from(const char *text, const char *start) {
    const char *begin = strstr(text, start);
    const char *end = begin != NULL ? strchr(begin, '{') : NULL;
    int depth = 0;
    if (end == NULL) {
        return strdup("");
    }
    do {
        depth += *end == '{';
        depth -= *end == '}';
        ++end;
    } while (depth > 0 && *end != 0);
    return strndup(begin, (size_t)(end - begin));
}

static char *find_header(const char *name) {
    char path[PATH_MAX];
    for (int i = 0; i < include_count; ++i) {
        snprintf(path, sizeof path, "%s/%s", includes[i], name);
        if (access(path, R_OK) == 0) {
            return strdup(path);
        }
    }
    return NULL;
}

static int toolkit_header(const char *name) {
    return strcmp(name, "stdint.h") == 0 || strcmp(name, "kernel_operator.h") == 0 ||
           strncmp(name, "simt_api/", 9) == 0 || strcmp(name, "tensor_api/tensor.h") == 0;
}

/* Every header is the toolkit's or found through -I; returns the texts of the latter and of what they include, one after
 * the other. Headers include each other without circles. */
static char *check_headers(const char *text) {
    char *all = strdup("");
    for (const char *at = strstr(text, "#include"); at != NULL; at = strstr(at + 1, "#include")) {
        char name[256] = "";
        char *path;
        char *header;
        char *below;
        if (sscanf(at, "#include %*1[\"<]%255[^\">\n]", name) != 1) {
            error("an #include cannot be read");
        }
        if (toolkit_header(name) || strncmp(name, "../", 3) == 0) { /* the latter is the twin's, behind #ifdef */
            continue;
        }
        path = find_header(name);
        if (path == NULL) {
            error("'%s' file not found", name);
        }
        header = read_all(path);
        blank_comments(header);
        below = check_headers(header);
        all = realloc(all, strlen(all) + strlen(header) + strlen(below) + 1);
        strcat(strcat(all, header), below);
        free(header);
        free(below);
    }
    return all;
}

static const char *line_of(const char *text, const char *at) {
    while (at > text && at[-1] != '\n') {
        --at;
    }
    return at;
}

/* launch() must be an exported C function. */
static void check_launch(const char *text) {
    for (const char *at = strstr(text, "launch("); at != NULL; at = strstr(at + 1, "launch(")) {
        const char *line = line_of(text, at);
        const char *linkage = strstr(line, "extern \"C\"");
        const char *macro = strstr(line, "JITBLAS_EXPORT");
        if ((linkage != NULL && linkage < at) || (macro != NULL && macro < at)) {
            return;
        }
    }
    error("no extern \"C\" function launch");
}

/* The word before <<<, which must be a kernel with C linkage. */
static char *kernel_name(const char *text) {
    const char *at = strstr(text, "<<<");
    const char *begin = at;
    char entry[512];
    char *name;
    if (at == NULL) {
        error("no kernel launch <<<...>>>");
    }
    while (begin > text && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_')) {
        --begin;
    }
    name = strndup(begin, (size_t)(at - begin));
    snprintf(entry, sizeof entry, "extern \"C\" __global__ __aicore__ void %s(", name);
    if (strstr(text, entry) == NULL) {
        error("use of undeclared kernel '%s'", name);
    }
    return name;
}

static void print_image(FILE *file, long flags) {
    unsigned char image[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    image[16] = 2; /* ET_EXEC */
    image[18] = 0x29;
    image[19] = 0x10;
    image[20] = 1;
    for (int i = 0; i < 4; ++i) {
        image[48 + i] = (unsigned char)(flags >> (8 * i));
    }
    image[52] = sizeof image;
    fputs("__attribute__((used, section(\".device_image\"))) static const unsigned char device_image[64] = {",
          file);
    for (size_t i = 0; i < sizeof image; ++i) {
        fprintf(file, "%d,", image[i]);
    }
    fputs("};\n", file);
}

static void write_source(const char *text, const char *headers, long flags) {
    char *name = kernel_name(text);
    char reference[PATH_MAX];
    FILE *file;
    snprintf(reference, sizeof reference, "%s/reference/%s.h", STANDIN_SOURCES, name);
    if (access(reference, R_OK) != 0) {
        snprintf(reference, sizeof reference, "%s/reference/unknown.h", STANDIN_SOURCES);
    }
    if (mkdtemp(work) == NULL) {
        error("no temporary folder");
    }
    snprintf(generated, sizeof generated, "%s/kernel.cpp", work);
    file = fopen(generated, "w");
    if (file == NULL) {
        error("cannot write %s", generated);
    }
    fprintf(file, "#include \"%s/reference/elements.h\"\n#define STANDIN_KERNEL \"%s\"\n", STANDIN_SOURCES,
            name);
    fprintf(file, "%s;\n", block_from(text, "struct Tiling {"));
    fprintf(file, "%s\n#include \"%s\"\n", block_from(text, "namespace spec {"), reference);
    if (strstr(headers, "jitblas_key(") != NULL || strstr(text, "jitblas_key(") != NULL) {
        fputs("extern \"C\" __attribute__((visibility(\"default\"))) const char* jitblas_key() { return "
              "JITBLAS_KEY; }\n",
              file);
    }
    if (strstr(text, "launch_packed(") != NULL) {
        fprintf(file, "#define JITBLAS_EXPORT extern \"C\" __attribute__((visibility(\"default\")))\n%s\n",
                block_from(text, "JITBLAS_EXPORT int launch_packed("));
    }
    if (flags != 0) {
        print_image(file, flags);
    }
    if (fclose(file) != 0) {
        error("cannot write %s", generated);
    }
}

static void compile(void) {
    const char *argv[MOST + 32];
    char libraries[PATH_MAX + 16];
    int count = 0;
    int status = 0;
    pid_t child;
    snprintf(libraries, sizeof libraries, "-L%s/lib64", root);
    const char *fixed[] = {STANDIN_CC,
                           "-x",
                           "c++",
                           "-std=c++17",
                           "-O2",
                           "-ffp-contract=off",
                           "-fno-exceptions",
                           "-shared",
                           "-fPIC",
                           "-fvisibility=hidden",
                           generated,
                           "-x",
                           "none",
                           "-o",
                           output,
                           libraries,
                           "-lascendcl",
                           "-lm"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; ++i) {
        argv[count++] = fixed[i];
    }
    for (int i = 0; i < define_count; ++i) {
        argv[count++] = defines[i];
    }
    argv[count] = NULL;
    child = fork();
    if (child == 0) {
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        error("the machine's compiler refuses the generated code");
    }
}

static void write_listing(const char *text) {
    FILE *file = fopen(listing, "w");
    if (file == NULL) {
        error("cannot write %s", listing);
    }
    fprintf(file, "%s: %s %s/include/kernel_operator.h", output, source, root);
    for (const char *at = strstr(text, "#include \"common/"); at != NULL;
         at = strstr(at + 1, "#include \"common/")) {
        char name[256] = "";
        if (sscanf(at, "#include \"%255[^\"\n]", name) == 1) {
            fprintf(file, " %s", find_header(name));
        }
    }
    fputc('\n', file);
    fclose(file);
}

static const char *value_of(int *i, int argc, char **argv) {
    if (*i + 1 >= argc) {
        error("argument to '%s' is missing", argv[*i]);
    }
    return argv[++*i];
}

/* Returns the architecture's vector flags. Only what jitblas is known to give, or what an environment
 * variable adds. */
static long read_arguments(int argc, char **argv) {
    const char *optional = getenv("STANDIN_BISHENG_ACCEPTS") != NULL ? getenv("STANDIN_BISHENG_ACCEPTS") : "";
    int asc = 0;
    int shared = 0;
    int pic = 0;
    long flags = 0;
    for (int i = 1; i < argc; ++i) {
        const char *word = argv[i];
        if (strcmp(word, "-x") == 0) {
            if (source != NULL || strcmp(value_of(&i, argc, argv), "asc") != 0) {
                error("language not recognized, or given after the source");
            }
            asc = 1;
        } else if (strcmp(word, "-shared") == 0) {
            shared = 1;
        } else if (strcmp(word, "-fPIC") == 0) {
            pic = 1;
        } else if (strcmp(word, "--npu-arch=dav-3510") == 0) {
            flags = VECTOR_950;
        } else if (strcmp(word, "--npu-arch=dav-2201") == 0) {
            flags = VECTOR_910;
        } else if (strcmp(word, "-std=c++17") == 0 || strcmp(word, "-O0") == 0 || strcmp(word, "-O2") == 0 ||
                   strcmp(word, "-O3") == 0) {
            continue;
        } else if (strncmp(word, "-D", 2) == 0 && word[2] != 0 && define_count < MOST) {
            defines[define_count++] = word;
        } else if (strncmp(word, "-I", 2) == 0 && word[2] != 0 && include_count < MOST) {
            includes[include_count++] = word + 2;
        } else if (strcmp(word, "-o") == 0) {
            output = value_of(&i, argc, argv);
        } else if (strcmp(word, "-MD") == 0 && strstr(optional, "-MD") != NULL) {
            list_headers = 1;
        } else if (strcmp(word, "-MF") == 0 && strstr(optional, "-MD") != NULL) {
            listing = value_of(&i, argc, argv);
        } else if (strncmp(word, "-ffile-prefix-map=", 18) == 0 &&
                   strstr(optional, "-ffile-prefix-map") != NULL) {
            continue;
        } else if (word[0] == '-') {
            error("unknown argument: '%s'", word);
        } else if (source != NULL) {
            error("more than one source: '%s'", word);
        } else {
            source = word;
        }
    }
    if (source == NULL || output == NULL) {
        error("no input file, or no -o");
    }
    if (!asc) {
        error("'%s' is host code: device code needs -x asc", source);
    }
    if (!shared || !pic) {
        error("this stand-in makes shared objects only: -shared -fPIC");
    }
    if (flags == 0) {
        error("--npu-arch=dav-3510 is missing");
    }
    return flags;
}

/* Every run leaves a line in the file that STANDIN_BISHENG_LOG names. */
static void write_log(int argc, char **argv) {
    const char *path = getenv("STANDIN_BISHENG_LOG");
    FILE *file = path != NULL && *path != 0 ? fopen(path, "a") : NULL;
    if (file != NULL) {
        for (int i = 1; i < argc; ++i) {
            fprintf(file, "%s%c", argv[i], i + 1 < argc ? ' ' : '\n');
        }
        fclose(file);
    }
}

int main(int argc, char **argv) {
    ssize_t length = readlink("/proc/self/exe", root, sizeof root - 1);
    const char *asked = getenv("STANDIN_BISHENG_FLAGS");
    char *text;
    char *headers;
    long flags;
    write_log(argc, argv);
    root[length > 0 ? length : 0] = 0;
    for (int level = 0; level < 2 && strrchr(root, '/') != NULL; ++level) {
        *strrchr(root, '/') = 0;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf(
            "BiSheng stand-in clang version 15.0.5\nTarget: %s\nThread model: posix\nInstalledDir: %s/bin\n",
            "ascend-standin", root);
        return 0;
    }
    flags = read_arguments(argc, argv);
    text = read_all(source);
    if (text == NULL) {
        error("no such file: '%s'", source);
    }
    blank_comments(text);
    if (flags == VECTOR_950 &&
        (strstr(text, "KERNEL_TYPE_AIC_ONLY") != NULL || strstr(text, "KERNEL_TYPE_MIX_") != NULL)) {
        flags = CUBE_950;
    }
    flags = asked != NULL && *asked != 0 ? strtol(asked, NULL, 0) : flags;
    headers = check_headers(text);
    if (strstr(text, "#include \"kernel_operator.h\"") == NULL) {
        error("kernel_operator.h is not included");
    }
    if (strstr(text, "KERNEL_TASK_TYPE_DEFAULT(") == NULL) {
        error("KERNEL_TASK_TYPE_DEFAULT is missing: this architecture does not infer the kernel type");
    }
    check_launch(text);
    if (getenv("STANDIN_BISHENG_FAILS") != NULL) {
        error("%s", getenv("STANDIN_BISHENG_FAILS"));
    }
    write_source(text, headers, flags);
    compile();
    if (list_headers && listing != NULL) {
        write_listing(text);
    }
    leave(0);
}
