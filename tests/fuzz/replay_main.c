/*
 * Runs a fuzz target over the files of its corpus without libFuzzer, so that every build checks
 * inputs that once caused a failure.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	uint8_t *data = malloc(1 << 20);
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f || !data) {
		perror(path);
		return 1;
	}
	n = fread(data, 1, 1 << 20, f);
	fclose(f);
	/* a copy of exactly this size, so that ASan reports a read of one byte too many */
	data = realloc(data, n ? n : 1);
	LLVMFuzzerTestOneInput(data, n);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent *e;
	int count = 0;
	DIR *dir;

	if (argc != 2 || !(dir = opendir(argv[1]))) {
		fprintf(stderr, "usage: %s CORPUS_DIR\n", argv[0]);
		return 2;
	}
	while ((e = readdir(dir))) {
		char path[4096];

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
		if (replay_file(path))
			return 1;
		count++;
	}
	closedir(dir);
	printf("%d inputs replayed\n", count);
	return count ? 0 : 1;
}
