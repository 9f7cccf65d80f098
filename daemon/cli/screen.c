/*
 * Output that is refreshed, as by top(1): the cursor is hidden, and keys are read singly. The
 * terminal is restored however the program ends or stops.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include "daemon/cli/cli.h"

/* clears the screen and hides the cursor; SCREEN_END shows it again */
#define SCREEN_BEGIN "\033[2J\033[?25l"
#define SCREEN_END   "\033[?25h"

static struct termios before;
static bool has_keys, keys_ended;
static volatile sig_atomic_t stopped; /* Ctrl-Z was pressed */

static void on_stop(int signo)
{
	(void)signo;
	stopped = 1;
}

/* Reads keys singly, unless the program is in the background: then the terminal is another
 * program's. */
static void take_keys(void)
{
	struct termios now;

	if (keys_ended || !isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp() ||
	    tcgetattr(STDIN_FILENO, &before) < 0)
		return;
	now = before;
	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	now.c_cc[VMIN] = 1;
	now.c_cc[VTIME] = 0;
	has_keys = tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
}

static void screen_begin(void)
{
	take_keys();
	fputs(SCREEN_BEGIN, stdout);
}

static void screen_end(void)
{
	fputs(SCREEN_END, stdout);
	fflush(stdout);
	if (has_keys)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
	has_keys = false;
}

void screen_open(void)
{
	struct sigaction action = { .sa_handler = on_stop };

	sigaction(SIGTSTP, &action, NULL);
	screen_begin();
}

void screen_close(void)
{
	screen_end();
	(void)signal(SIGTSTP, SIG_DFL);
}

void screen_size(unsigned short *ret_rows, unsigned short *ret_columns)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	*ret_rows = size.ws_row;
	*ret_columns = size.ws_col;
}

/* The length of the colour sequence at @s, such as "\033[32m" (cli.h); 0 = it is something else. */
static size_t colour_at(const char *s)
{
	size_t n = strncmp(s, "\033[", 2) == 0 ? 2 + strspn(s + 2, "0123456789") : 0;

	return n > 2 && s[n] == 'm' ? n + 1 : 0;
}

/* Prints @columns of a line. Colours take no column; whatever else terminals obey is made
 * visible. */
static void print_cut(FILE *to, const char *line, size_t columns)
{
	char piece[1024], cut[4 * sizeof(piece)];

	while (*line) {
		size_t n = 0, colour;

		while (line[n] && n < sizeof(piece) - 1 && !colour_at(line + n))
			n++;
		snprintf(piece, sizeof(piece), "%.*s", (int)n, line);
		columns -= text_clean(piece, columns, cut, sizeof(cut));
		colour = colour_at(line + n);
		fprintf(to, "%s%.*s", cut, (int)colour, line + n);
		line += n + colour;
	}
}

/*
 * Draws @text over the screen, without flicker: each line is cut at the terminal's width, because a
 * wrapped one would shift all others, and clears the rest of its row. The screen's last row stays
 * empty: a newline there would scroll.
 */
void screen_print(FILE *to, const char *text, unsigned short rows, unsigned short columns)
{
	char line[4096];

	fputs("\033[H", to);
	for (unsigned short row = 1; *text && row < rows; row++) {
		size_t len = strcspn(text, "\n");

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		print_cut(to, line, columns);
		fputs("\033[K\n", to);
		text += len + (text[len] == '\n');
	}
	fputs("\033[J", to);
}

void screen_show(const char *text)
{
	unsigned short rows, columns;

	screen_size(&rows, &columns);
	screen_print(stdout, text, rows, columns);
	fflush(stdout);
}

static void screen_stop(void)
{
	stopped = 0;
	screen_end();
	(void)raise(SIGSTOP);
	screen_begin(); /* after SIGCONT */
}

int screen_key(int ms)
{
	struct pollfd keys = { .fd = has_keys && !keys_ended ? STDIN_FILENO : -1,
			       .events = POLLIN };
	int n = cli_interrupted ? 0 : poll(&keys, 1, ms);
	char c;

	if (stopped)
		screen_stop();
	if (cli_interrupted)
		return 'q';
	if (n <= 0)
		return 0;
	if (!(keys.revents & POLLIN) || read(STDIN_FILENO, &c, 1) != 1) {
		keys_ended = true; /* there is no terminal any more */
		return 0;
	}
	return (unsigned char)c;
}
