from gapwatch.cli import main

main()
