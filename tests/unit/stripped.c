/* A library with a private function, for test_symbols.c and others: see
 * daemon/symbols/CMakeLists.txt. */
int public_function(int x);

__attribute__((noinline)) static int private_function(int x)
{
	return x * 7 + 3;
}

int public_function(int x)
{
	return private_function(x) + private_function(x + 1);
}
